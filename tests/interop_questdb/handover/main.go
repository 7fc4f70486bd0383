// Writes rows "v = start .. start+count-1" with a symbol each through the published client.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	qdb "github.com/questdb/go-questdb-client/v4"
)

func fail(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func main() {
	start, err := strconv.Atoi(os.Args[2])
	fail(err)
	count, err := strconv.Atoi(os.Args[3])
	fail(err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	sender, err := qdb.LineSenderFromConf(ctx, os.Args[1])
	fail(err)
	for number := start; number < start+count; number++ {
		symbol := fmt.Sprintf("s%d", number%5)
		fail(sender.Table("t").Symbol("s", symbol).Int64Column("v", int64(number)).At(ctx, time.Unix(0, int64(number)+1)))
		fail(sender.Flush(ctx))
		fmt.Println(number)
	}
	if err := sender.Close(ctx); err != nil {
		fmt.Println("close:", err)
	}
}
