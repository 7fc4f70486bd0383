// Package vectors holds the test vectors, as README.md describes them.
package vectors

import (
	"embed"
	"encoding/json"
	"sort"
	"strings"
)

// Version is the release of the vectors.
const Version = "@VERSION@"

//go:embed data/*.json
var data embed.FS

// Families returns the names of all families.
func Families() []string {
	entries, _ := data.ReadDir("data")
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	sort.Strings(names)
	return names
}

// Load decodes one family into what into points to.
func Load(family string, into any) error {
	raw, err := data.ReadFile("data/" + family + ".json")
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
