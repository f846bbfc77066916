// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

func TestVolumes(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		old := unix.Umask(0o077)
		defer unix.Umask(old)
		s := mustOpen(t, opts)
		limit := int64(8 * mib)
		if s.Info().DiskLimit != nil {
			if err := s.CreateVolume("firstvolume", limit); !fault.Is(err, fault.Unsupported) {
				t.Errorf("CreateVolume with a limit = %v, want unsupported", err)
			}
			limit = 0
		}
		if err := s.CreateVolume("firstvolume", limit); err != nil {
			t.Fatal(err)
		}
		if err := s.CreateVolume("firstvolume", limit); !fault.Is(err, fault.Exists) {
			t.Errorf("CreateVolume again = %v, want exists", err)
		}
		v, err := s.OpenVolume("firstvolume")
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		var st unix.Stat_t
		if err := unix.Fstat(int(v.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid); got != "40755 1000:1000" {
			t.Errorf("the volume is %s", got)
		}
		used, most, err := s.VolumeUsage("firstvolume")
		if s.Info().DiskLimit != nil {
			if !fault.Is(err, fault.Unsupported) {
				t.Errorf("VolumeUsage = %v, want unsupported", err)
			}
		} else {
			if err != nil || most != limit || used > mib {
				t.Errorf("VolumeUsage = %d, %d, %v", used, most, err)
			}
			if n, err := fill(at(int(v.Fd()), "big"), 16*mib); !errors.Is(err, unix.EDQUOT) || n > 8*mib {
				t.Errorf("a volume of 8 MiB took %d bytes and then %v", n, err)
			}
			if used, _, err = s.VolumeUsage("firstvolume"); err != nil || used < 6*mib {
				t.Errorf("VolumeUsage = %d, %v", used, err)
			}
		}
		if err := unix.Mkdirat(s.volumes, "halfvolume", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, opts)
		ids, err := s.Volumes()
		if diff := cmp.Diff([]string{"firstvolume"}, ids); diff != "" || err != nil {
			t.Errorf("Volumes: %v (-want +got):\n%s", err, diff)
		}
		for range 2 {
			if err := s.RemoveVolume("firstvolume"); err != nil {
				t.Fatal(err)
			}
		}
		_, open := s.OpenVolume("firstvolume")
		_, _, usage := s.VolumeUsage("firstvolume")
		for name, err := range map[string]error{"OpenVolume": open, "VolumeUsage": usage} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s of what is removed = %v, want not found", name, err)
			}
		}
		_, open = s.OpenVolume("../layers")
		_, _, usage = s.VolumeUsage("../layers")
		for name, err := range map[string]error{
			"OpenVolume": open, "VolumeUsage": usage, "CreateVolume": s.CreateVolume("a/../../b", 0), "RemoveVolume": s.RemoveVolume("../layers"),
			"a tiny limit": s.CreateVolume("tinyvolume", 1),
		} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s = %v, want invalid", name, err)
			}
		}
	})
}
