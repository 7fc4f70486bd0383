package vectors

import "testing"

func TestEveryFamilyIsWhole(t *testing.T) {
	if len(Families()) == 0 {
		t.Fatal("there are no families")
	}
	for _, family := range Families() {
		var found struct {
			Corpus        string
			NumberOfTests int
			TestGroups    []struct{ Tests []any }
		}
		if err := Load(family, &found); err != nil {
			t.Fatal(family, err)
		}
		count := 0
		for _, group := range found.TestGroups {
			count += len(group.Tests)
		}
		if found.Corpus != Version || count != found.NumberOfTests {
			t.Errorf("%s: corpus %s, %d tests, must be %d", family, found.Corpus, count, found.NumberOfTests)
		}
	}
}
