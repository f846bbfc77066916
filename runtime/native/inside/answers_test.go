// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sandpit.dev/runtime/native/boot"
)

func TestProgramsAreToldOfAsManyProcessorsAsTheLimitComesTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quota")
	rapid.Check(t, func(t *rapid.T) {
		quota := rapid.IntRange(1000, 9*period).Draw(t, "quota")
		if err := os.WriteFile(path, fmt.Append(nil, quota), 0o600); err != nil {
			t.Fatal(err)
		}
		gauge, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gauge.Close() }()
		told := &facts{gauges: boot.Gauges{CPU: gauge}, most: 64, first: rapid.Uint32().Draw(t, "first")}
		var set unix.CPUSet
		for _, cpu := range rapid.SliceOfNDistinct(rapid.IntRange(0, 1023), 1, 40, rapid.ID).Draw(t, "set") {
			set.Set(cpu)
		}
		shown, fewer := told.processorsOf(&set)
		limit := (quota + period - 1) / period
		if want := min(limit, set.Count()); shown.Count() != want || fewer != (want < set.Count()) {
			t.Errorf("%d of %d are shown, want %d, and fewer is %v", shown.Count(), set.Count(), want, fewer)
		}
		for cpu := range 1024 {
			if shown.IsSet(cpu) && !set.IsSet(cpu) {
				t.Errorf("processor %d is shown, and not the thread's", cpu)
			}
		}
	})
}
