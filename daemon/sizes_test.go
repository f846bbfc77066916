// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
)

func withFile(t *testing.T, text string) *Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandpit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	if err := c.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestTheOperatorChangesSizes(t *testing.T) {
	c := withFile(t, "sizes: {huge: {cpu_cores: 8, memory_mb: 16384}, small: {cpu_cores: 0.5, memory_mb: 512}, large: {}}")
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	want := sandbox.Sizes{{Name: "small", CPU: 0.5, MemoryMB: 512}, {Name: "medium", CPU: 2, MemoryMB: 4096}, {Name: "huge", CPU: 8, MemoryMB: 16384}}
	if got := c.sizes(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	shipped := DefaultConfig()
	if got := shipped.sizes(); !slices.Equal(got, sandbox.DefaultSizes()) {
		t.Errorf("as shipped: got %v", got)
	}
	c = withFile(t, `
templates: {web: {image: python, size: large, memory_mb: 512}}
pools: [{image: python, size: small, disk_mb: 64, min: 1}, {template: web, min: 1}]`)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	specs, err := c.specs(permit.Rules{})
	if err != nil || specs["web"].Limits != (sandbox.Limits{CPU: 4, MemoryMB: 512}) {
		t.Errorf("the template: got %+v, %v", specs["web"].Limits, err)
	}
	pools := poolsOf(t, *c)
	if got := []sandbox.Limits{pools[0].Limits, pools[1].Limits}; !slices.Equal(got, []sandbox.Limits{{CPU: 1, MemoryMB: 1024, DiskMB: 64}, {CPU: 4, MemoryMB: 512}}) {
		t.Errorf("the pools: got %+v", got)
	}
	for text, field := range map[string]string{
		"templates: {web: {size: huge}}":                     "templates.web.size",
		"pools: [{size: huge, min: 1}]":                      "pools.size",
		"sizes: {small: {}}\npools: [{size: small, min: 1}]": "use medium, large",
		"sizes: {small: {}, medium: {}, large: {}}":          "sizes",
		"sizes: {Huge: {cpu_cores: 8, memory_mb: 16384}}":    "sizes.Huge",
		"sizes: {huge: {cpu_cores: 8}}":                      "sizes.huge.memory_mb",
		"sizes: {huge: {cpu_cores: 1e3, memory_mb: 4096}}":   "sizes.huge.cpu_cores",
	} {
		err := withFile(t, text).Check()
		if e := fault.As(err); e.Code != fault.Invalid || !strings.Contains(e.Message, field) {
			t.Errorf("%s: got %v, want Invalid about %s", text, err, field)
		}
	}
}
