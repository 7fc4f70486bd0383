module lance-vectors

go 1.21
