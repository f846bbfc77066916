// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

func TestStore(t *testing.T) { eachKind(t, testStore) }

func testStore(t *testing.T, opts Options) {
	t.Run("ALayerHasUpperAndWorkOwnedByRoot", func(t *testing.T) {
		old := unix.Umask(0o077)
		defer unix.Umask(old)
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "firstlayer", 0)
		logs, err := s.Logs("firstlayer")
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		got := map[string]string{}
		for name, path := range map[string]string{"upper": at(l.Fd(), "upper"), "work": at(l.Fd(), "work"), "logs": at(int(logs.Fd()), "")} {
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				t.Fatal(err)
			}
			got[name] = fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
		}
		want := map[string]string{"upper": "40755 0:0", "work": "40700 0:0", "logs": "40700 0:0"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("directories (-want +got):\n%s", diff)
		}
	})
	t.Run("CreateOfAnExistingIDIsExistsAndHarmsNothing", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "takenlayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("kept"))
		if _, err := s.Create("takenlayer", 0); !fault.Is(err, fault.Exists) {
			t.Errorf("Create = %v, want exists", err)
		}
		if got := readFile(t, at(l.Fd(), "upper/file")); got != "kept" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("OneOfManyConcurrentCreatesWins", func(t *testing.T) {
		s := mustOpen(t, opts)
		var wg sync.WaitGroup
		results := make([]error, 8)
		for i := range results {
			wg.Go(func() {
				l, err := s.Create("contested", 0)
				if err == nil {
					l.Close()
				}
				results[i] = err
			})
		}
		wg.Wait()
		won := 0
		for _, err := range results {
			switch {
			case err == nil:
				won++
			case !fault.Is(err, fault.Exists):
				t.Errorf("Create = %v, want exists", err)
			}
		}
		if won != 1 {
			t.Errorf("%d calls made the layer, want 1", won)
		}
	})
	t.Run("ALayerSurvivesCloseAndOpen", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "lastinglayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("kept"))
		l.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, opts)
		again, err := s.Open("lastinglayer")
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got := readFile(t, at(again.Fd(), "upper/file")); got != "kept" {
			t.Errorf("file = %q, want kept", got)
		}
		ids, err := s.List()
		if err != nil || !slices.Contains(ids, "lastinglayer") {
			t.Errorf("List = %q, %v", ids, err)
		}
	})
	t.Run("WhatDoesNotExistIsNotFound", func(t *testing.T) {
		s := mustOpen(t, opts)
		_, open := s.Open("missinglayer")
		_, logs := s.Logs("missinglayer")
		_, _, usage := s.Usage("missinglayer")
		for name, err := range map[string]error{"Open": open, "Logs": logs, "Usage": usage, "Resize": s.Resize("missinglayer", mib)} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s = %v, want not found", name, err)
			}
		}
	})
	t.Run("RemoveTwiceIsFineAndTakesTheLogs", func(t *testing.T) {
		s := mustOpen(t, opts)
		mustCreate(t, s, "shortlived", 0)
		logs, err := s.Logs("shortlived")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, at(int(logs.Fd()), "1.log"), []byte("output"))
		logs.Close()
		for range 2 {
			if err := s.Remove("shortlived"); err != nil {
				t.Fatal(err)
			}
		}
		if ids, err := s.List(); err != nil || slices.Contains(ids, "shortlived") {
			t.Errorf("List = %q, %v", ids, err)
		}
		mustCreate(t, s, "shortlived", 0)
		if logs, err = s.Logs("shortlived"); err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		if left, err := logs.Readdirnames(-1); err != nil || len(left) > 0 {
			t.Errorf("new logs hold %q, %v", left, err)
		}
	})
	testStoreAfterHarm(t, opts)
}

// testStoreAfterHarm tests what a store makes of trees and ids that are hostile, and of what a crash left.
func testStoreAfterHarm(t *testing.T, opts Options) {
	t.Run("AHugeTreeIsGoneFromTheListAtOnceAndFromTheDiskAfterClose", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "hugelayer", 0)
		for d := range 100 {
			dir := at(l.Fd(), fmt.Sprintf("upper/%d", d))
			if err := os.Mkdir(dir, 0o500); err != nil {
				t.Fatal(err)
			}
			writeFile(t, dir+"/0", nil)
			for f := range 199 {
				if err := os.Link(dir+"/0", fmt.Sprintf("%s/%d", dir, f+1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.Remove("hugelayer"); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, s, "hugelayer", 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, opts)
		for _, dir := range []int{s.trash.dir, s.trash.deleting} {
			if left, err := names(dir); err != nil || len(left) > 0 {
				t.Errorf("the trash holds %q, %v", left, err)
			}
		}
	})
	t.Run("WhoReadsLogsMeanwhileMakesNoneAgain", func(t *testing.T) {
		s := mustOpen(t, opts)
		for range 100 {
			mustCreate(t, s, "readlayer", 0)
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					for {
						logs, err := s.Logs("readlayer")
						if err != nil {
							if !fault.Is(err, fault.NotFound) {
								t.Errorf("Logs: %v", err)
							}
							return
						}
						_ = logs.Close()
					}
				})
			}
			if err := s.Remove("readlayer"); err != nil {
				t.Fatal(err)
			}
			readers.Wait()
			if left, err := names(s.logs); err != nil || slices.Contains(left, "readlayer") {
				t.Fatalf("logs = %q, %v", left, err)
			}
		}
	})
	t.Run("OpenClearsWhatAKilledServerLeft", func(t *testing.T) {
		s := mustOpen(t, opts)
		half := mustCreate(t, s, "halfmadelayer", 0)
		whole := mustCreate(t, s, "wholelayer", 0)
		writeFile(t, at(whole.Fd(), "upper/file"), []byte("kept"))
		for _, path := range []string{at(half.Fd(), "upper"), at(s.logs, "wholelayer")} {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{at(s.logs, "orphanedlogs"), at(s.trash.dir, "thrown.1"), at(s.trash.deleting, "thrown.2")} {
			// The trash may be taken out from under it: then there is less to clear later.
			if err := os.MkdirAll(path+"/deep/deeper", 0o700); err != nil && !(strings.Contains(path, "/thrown.") && errors.Is(err, os.ErrNotExist)) {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, opts)
		ids, err := s.List()
		if err != nil || slices.Contains(ids, "halfmadelayer") || !slices.Contains(ids, "wholelayer") {
			t.Errorf("List = %q, %v; want wholelayer and not halfmadelayer", ids, err)
		}
		if left, err := names(s.logs); err != nil || slices.Contains(left, "orphanedlogs") {
			t.Errorf("logs = %q, %v", left, err)
		}
		logs, err := s.Logs("wholelayer")
		if err != nil {
			t.Errorf("Logs of a layer that lost them: %v", err)
		} else {
			logs.Close()
		}
		l, err := s.Open("wholelayer")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got := readFile(t, at(l.Fd(), "upper/file")); got != "kept" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("FreshWorkClearsWhatAnOverlayLeft", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "worklayer", 0)
		if err := l.FreshWork(); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(at(l.Fd(), "work/work/#1/x"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(at(l.Fd(), "work/work/whiteout"), unix.S_IFCHR, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(l.Fd(), "work/work"), 0); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.FreshWork(); err != nil {
				t.Fatal(err)
			}
		}
		left, err := os.ReadDir(at(l.Fd(), "work"))
		if err != nil || len(left) > 0 {
			t.Errorf("work = %v, %v; want empty", left, err)
		}
	})
	t.Run("HostileIDsAreInvalidAndTouchNothing", func(t *testing.T) {
		s := mustOpen(t, opts)
		before, err := names(s.top)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{
			"", ".", "..", "short", strings.Repeat("a", 33), "../../../../tmp", "layers/../x", "/etc/passwd", "UPPERCASE",
			"with-dash1", "with.dot12", "with space", "nul\x00nul\x00", "newline\nx", "ünïcödé12", "~rootroot", "%2e%2e%2f2e",
		} {
			_, create := s.Create(id, 0)
			_, open := s.Open(id)
			_, logs := s.Logs(id)
			_, _, usage := s.Usage(id)
			for name, err := range map[string]error{
				"Create": create, "Open": open, "Logs": logs, "Usage": usage, "Remove": s.Remove(id), "Resize": s.Resize(id, mib),
			} {
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("%s(%q) = %v, want invalid", name, id, err)
				}
			}
		}
		after, err := names(s.top)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(before)
		slices.Sort(after)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("store (-before +after):\n%s", diff)
		}
	})
	t.Run("LimitsOutOfBoundsAreInvalid", func(t *testing.T) {
		s := mustOpen(t, opts)
		for _, limit := range []int64{-1, 1, minDiskBytes - 1} {
			if _, err := s.Create("boundedlayer", limit); !fault.Is(err, fault.Invalid) {
				t.Errorf("Create with limit %d = %v, want invalid", limit, err)
			}
		}
		mustCreate(t, s, "boundedlayer", minDiskBytes)
	})
	t.Run("LinksInALayerLeadRemoveNowhere", func(t *testing.T) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "linkinglayer", 0)
		outside := t.TempDir()
		writeFile(t, filepath.Join(outside, "precious"), []byte("kept"))
		for _, dir := range []string{"upper", "work"} {
			if err := os.Symlink(outside, at(l.Fd(), dir+"/link")); err != nil {
				t.Fatal(err)
			}
		}
		l.fresh.Store(false)
		if err := l.FreshWork(); err != nil {
			t.Fatal(err)
		}
		if err := s.Remove("linkinglayer"); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, filepath.Join(outside, "precious")); got != "kept" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("AClosedStoreRefusesAndClosesAgain", func(t *testing.T) {
		s := mustOpen(t, opts)
		if err := s.Sync(t.Context()); err != nil {
			t.Errorf("Sync: %v", err)
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, create := s.Create("toolatelayer", 0)
		_, list := s.List()
		for name, err := range map[string]error{"Create": create, "List": list, "Remove": s.Remove("toolatelayer"), "Sync": s.Sync(t.Context())} {
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s = %v, want unavailable", name, err)
			}
		}
	})
}

func TestDiskLimit(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		full := mustCreate(t, s, "fulllayer", 16*mib)
		other := mustCreate(t, s, "otherlayer", 16*mib)
		if opts.Kind == Plain {
			_, _, usage := s.Usage("fulllayer")
			for name, err := range map[string]error{"DiskLimit": s.Info().DiskLimit, "Usage": usage, "Resize": s.Resize("fulllayer", mib)} {
				if !fault.Is(err, fault.Unsupported) {
					t.Errorf("%s = %v, want unsupported", name, err)
				}
			}
			return
		}
		needLimits(t, s)
		n, err := fill(at(full.Fd(), "upper/big"), 32*mib)
		if !errors.Is(err, unix.EDQUOT) || n > 16*mib || n < 12*mib {
			t.Errorf("wrote %d bytes and then %v; want EDQUOT at nearly 16 MiB", n, err)
		}
		if n, err := fill(at(other.Fd(), "upper/big"), 8*mib); err != nil {
			t.Errorf("the other layer took %d bytes and then %v", n, err)
		}
		mustCreate(t, s, "thirdlayer", 16*mib)
		logs, err := s.Logs("fulllayer")
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		if n, err := fill(at(int(logs.Fd()), "1.log"), 2*mib); err != nil {
			t.Errorf("the full layer's log took %d bytes and then %v", n, err)
		}
		used, limit, err := s.Usage("fulllayer")
		if err != nil || limit != 16*mib || used < 12*mib || used > 16*mib {
			t.Errorf("Usage = %d, %d, %v; want nearly 16 MiB of 16", used, limit, err)
		}
		if err := s.Resize("fulllayer", 64*mib); err != nil {
			t.Fatal(err)
		}
		if n, err := fill(at(full.Fd(), "upper/more"), 16*mib); err != nil {
			t.Errorf("after Resize: wrote %d bytes and then %v", n, err)
		}
		if err := s.Resize("fulllayer", 16*mib); err != nil {
			t.Fatal(err)
		}
		if _, err := fill(at(full.Fd(), "upper/third"), mib); !errors.Is(err, unix.EDQUOT) {
			t.Errorf("over a lowered limit: %v, want EDQUOT", err)
		}
		for _, name := range []string{"big", "more"} {
			if err := os.Remove(at(full.Fd(), "upper/"+name)); err != nil {
				t.Errorf("a full layer cannot delete: %v", err)
			}
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := fill(at(full.Fd(), "upper/again"), 4*mib); err != nil {
			t.Errorf("after deleting: wrote %d bytes and then %v", n, err)
		}
		if err := s.Resize("fulllayer", 0); err != nil {
			t.Fatal(err)
		}
		if _, limit, err := s.Usage("fulllayer"); err != nil || limit != 0 {
			t.Errorf("limit = %d, %v; want none", limit, err)
		}
	})
}

// fill writes a file and syncs it, until size or the first error.
func fill(path string, size int) (int, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for n := 0; n < size; n += len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			return n, err
		}
	}
	return size, f.Sync()
}

func TestADeepTreeIsRemovedWithFewDescriptors(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	l := mustCreate(t, s, "deeplayer", 0)
	dir, err := openDir(l.Fd(), "upper")
	if err != nil {
		t.Fatal(err)
	}
	// The name that removal itself would give to what it lifts up.
	writeFile(t, at(l.Fd(), ".deep-1"), nil)
	for range 500 {
		if err := unix.Mkdirat(dir, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := openDir(dir, "d")
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(dir)
		dir = next
	}
	unix.Close(dir)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	highest := 0
	for _, e := range open {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, n)
	}
	low := unix.Rlimit{Cur: uint64(highest) + 3*maxDepth, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.Remove("deeplayer"), s.Close())
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestStructuresAreTheKernels(t *testing.T) {
	got := map[string]uintptr{
		"fs_info": unsafe.Sizeof(fsInfoArgs{}), "ino_lookup": unsafe.Sizeof(inoLookupArgs{}), "qgroup_inherit": unsafe.Offsetof(qgroupInherit{}.parent),
		"qgroup_assign": unsafe.Sizeof(qgroupAssignArgs{}), "qgroup_create": unsafe.Sizeof(qgroupCreateArgs{}),
		"qgroup_limit": unsafe.Sizeof(qgroupLimitArgs{}), "quota_ctl": unsafe.Sizeof(quotaCtlArgs{}), "vol_args": unsafe.Sizeof(volArgs{}),
		"vol_args_v2": unsafe.Sizeof(volArgsV2{}), "search": unsafe.Sizeof(searchArgs{}), "subvol_info": unsafe.Sizeof(subvolInfo{}),
	}
	want := map[string]uintptr{"fs_info": 1024, "ino_lookup": 4096, "qgroup_assign": 24, "qgroup_create": 16, "qgroup_inherit": 72, "qgroup_limit": 48, "quota_ctl": 16, "search": 4096, "subvol_info": 504, "vol_args": 4096, "vol_args_v2": 4096}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}
