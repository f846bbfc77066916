// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/runtime/native/boot"
)

// The files say the same by the gauges of either version of cgroups.
func TestFactsAreTheLimitsOfEitherVersion(t *testing.T) {
	for name, g := range map[string]map[string]string{
		"v1": {
			"memory": "209715200\n", "memory limit": "536870912\n", "cpu": "150000\n", "tasks": "3\n",
			"memory stat": "cache 1\nrss 1\nshmem 1\nactive_anon 1\ntotal_cache 104857600\ntotal_rss 94371840\ntotal_shmem 1048576\ntotal_active_anon 4096\n",
		},
		"v2": {
			"memory": "209715200\n", "memory limit": "536870912\n", "cpu": "150000 100000\n", "tasks": "3\n",
			"memory stat": "anon 94371840\nfile 104857600\nkernel 1\nshmem 1048576\nactive_anon 4096\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			open := func(name string) *os.File {
				f, err := os.Open(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = f.Close() })
				return f
			}
			for name, text := range g {
				put(name, text)
			}
			put("cpu.stat", "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n")
			for _, name := range boot.Facts() {
				put(name, "")
			}
			told, err := openFacts(boot.Files{Cgroup: open("."), Facts: open("."), Gauges: boot.Gauges{
				Memory: open("memory"), MemoryLimit: open("memory limit"), MemoryStat: open("memory stat"), CPU: open("cpu"), Tasks: open("tasks"),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if told.most < 2 {
				t.Skip("the host has one processor")
			}
			for name, lines := range map[string][]string{
				boot.OnlineFact: {"0-1\n"},
				boot.MemoryFact: {"MemTotal:         524288 kB\n", "MemFree:          319488 kB\n", "MemAvailable:     420864 kB\n", "Cached:           102400 kB\n", "Active:                4 kB\n", "SwapTotal:             0 kB\n"},
				boot.StatFact:   {"cpu  200 0 100 0 ", "cpu0 100 0 50 0 ", "cpu1 100 0 50 0 ", "\nbtime "},
				boot.LoadFact:   {"0.00 0.00 0.00 0/3 0\n"},

				boot.CPUMaxFact: {"150000 100000\n"}, boot.MemoryMaxFact: {"536870912\n"}, boot.MemoryCurrentFact: {"209715200\n"},
			} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range lines {
					if !strings.Contains(string(text), line) {
						t.Errorf("%s has no %q:\n%s", name, line, text)
					}
				}
			}
		})
	}
}
