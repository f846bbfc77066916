// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestPoolsAreTextsOfASetting(t *testing.T) {
	list := []PoolConfig{
		{Min: 2}, {Image: "python", Size: "small", CPU: 0.5, MemoryMB: 128, DiskMB: 64, Pids: 32, Min: 1, Max: 8, Refill: 2},
		{Name: `two words, "quoted"=`, Template: "web", Min: 1},
	}
	texts := poolTexts(list)
	if texts[0] != "min=2" || texts[1] != "image=python size=small cpu_cores=0.5 memory_mb=128 disk_mb=64 pids=32 min=1 max=8 refill=2" {
		t.Errorf("got %q", texts)
	}
	got, err := parsePools(texts)
	if err != nil || !slices.Equal(got, list) {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, says := range map[string]string{
		"":                         "empty",
		"  ":                       "empty",
		"python":                   "does not begin with a word",
		"images=python min=1":      "does not begin with a word",
		"min=1 min=2":              "min twice",
		"min=1.5":                  "not a whole number",
		"min=99999999999999999999": "not a whole number",
		"cpu_cores=much":           "not a number",
		`name="x min=1`:            "quotes that do not end",
	} {
		_, err := parsePools([]string{"min=1", text})
		if e := fault.As(err); err == nil || e.Code != fault.Invalid || e.Fields[0].Name != "pools" || !strings.Contains(e.Message, says) || !strings.Contains(e.Remedy, "image=python") {
			t.Errorf("%q: got %v", text, err)
		}
	}
	c := withFile(t, "pools: [{image: python, size: large, min: 1}]")
	if got := c.base.Values.PoolList; !slices.Equal(got, []string{"image=python size=large min=1"}) || c.base.Sources["pools"] != "file" {
		t.Errorf("got %q from %q", got, c.base.Sources["pools"])
	}
	if err := c.ReadEnv(func(name string) string { return map[string]string{"SANDPIT_POOL": "3"}[name] }); err != nil {
		t.Fatal(err)
	}
	if got := c.base.Values.PoolList; !slices.Equal(got, []string{"min=3"}) || c.base.Sources["pools"] != "environment" {
		t.Errorf("got %q from %q", got, c.base.Sources["pools"])
	}
}
