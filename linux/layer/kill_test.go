// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// churnFiles is how many files each layer of churn has, all with the same content.
const churnFiles = 40

// churn copies, snapshots and exchanges layers as fast as it can, until it is killed. It
// prints what is done for good.
func churn(dir string, kind Kind) {
	check := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	s, err := Open(ctx, withAttach(Options{Dir: dir, Kind: kind, SizeBytes: minLoopSize}))
	check(err)
	if _, err := s.Open("baselayer"); err != nil {
		base, err := s.Create("baselayer", 0)
		check(err)
		for _, content := range []string{"a", "b"} {
			for i := range churnFiles {
				check(os.WriteFile(at(base.Fd(), fmt.Sprintf("upper/f%d", i)), []byte(content), 0o644))
			}
			_, err = s.Snapshot(ctx, "baselayer", "snapshot"+content)
			check(err)
		}
		rolled, err := s.Create("rolledlayer", 0)
		check(err)
		check(rolled.Close())
	}
	var archive bytes.Buffer
	check(s.Export(ctx, "snapshota", &archive))
	fmt.Println("ready")
	run := rand.Uint32()
	var out sync.Mutex
	say := func(words ...any) {
		out.Lock()
		fmt.Println(words...)
		out.Unlock()
	}
	loop := func(f func(id string)) {
		for i := 0; ; i++ {
			f(fmt.Sprintf("%08x%04d", run, i))
		}
	}
	go loop(func(id string) {
		_, err := s.Snapshot(ctx, "baselayer", "snap"+id)
		check(err)
		say("snapshot", "snap"+id)
		check(s.RemoveSnapshot("snap" + id))
		_, err = s.Snapshot(ctx, "snapshota", "kept"+id)
		check(err)
		say("kept", "kept"+id)
	})
	go loop(func(id string) {
		l, err := s.CreateFrom(ctx, "copy"+id, "snapshotb", 0)
		check(err)
		check(l.Close())
		check(s.Remove("copy" + id))
	})
	go loop(func(id string) {
		for _, from := range []string{"snapshota", "", "snapshotb"} {
			check(s.Exchange(ctx, "rolledlayer", from, 0, atOnce))
			s.CommitCopies()
		}
	})
	go loop(func(id string) {
		_, err := s.Import(ctx, "impo"+id, bytes.NewReader(archive.Bytes()), manyBytes)
		check(err)
		say("kept", "impo"+id)
		check(s.CreateVolume("volu"+id, 0))
	})
	select {}
}

// whole tells what is in a tree of churn, where nothing of it is missing.
func whole(dir int) (string, error) {
	entries, err := names(dir)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	contents := map[string]int{}
	for _, name := range entries {
		data, err := os.ReadFile(at(dir, name))
		if err != nil {
			return "", err
		}
		contents[string(data)]++
	}
	for content, n := range contents {
		if n == churnFiles {
			return content, nil
		}
	}
	return "", fmt.Errorf("%d files with %v", len(entries), contents)
}

func TestAKilledServerLeavesWholeDisksOrNone(t *testing.T) {
	for _, kind := range []Kind{Plain, Loop} {
		t.Run(string(kind), func(t *testing.T) {
			if needRoot(t); kind == Loop {
				needLoop(t)
			}
			nothingLeft(t)
			dir := filepath.Join(t.TempDir(), "store")
			rounds := 8
			if os.Getenv("SANDPIT_SOAK") != "" {
				rounds = 200
			}
			for range rounds {
				cmd, out := server(t, dir, "LAYER_TEST_CHURN="+string(kind))
				if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
					t.Fatalf("the server said %q, %v", line, err)
				}
				kept := []string{}
				enough := time.Now().Add(time.Duration(20+rand.IntN(150)) * time.Millisecond)
				for len(kept) == 0 || time.Now().Before(enough) {
					line, err := out.ReadString('\n')
					if err != nil || strings.HasPrefix(line, "error") {
						t.Fatalf("the server said %q, %v", line, err)
					}
					if id, ok := strings.CutPrefix(strings.TrimSpace(line), "kept "); ok {
						kept = append(kept, id)
					}
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				inspect(t, dir, kind, kept)
			}
		})
	}
}

// inspect opens the store of a killed server.
func inspect(t *testing.T, dir string, kind Kind, kept []string) {
	t.Helper()
	s, err := Open(t.Context(), withAttach(Options{Dir: dir, Kind: kind}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range s.staging.slot {
		if left, err := names(s.staging.slot[i].dir); err != nil || len(left) > 0 {
			t.Errorf("staging holds %q, %v", left, err)
		}
	}
	layers, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range layers {
		l, err := s.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		upper, err := openDir(l.Fd(), "upper")
		if err != nil {
			t.Fatalf("layer %s: %v", id, err)
		}
		content, err := whole(upper)
		if err != nil || content == "" && id != "rolledlayer" || strings.HasPrefix(id, "copy") && content != "b" {
			t.Errorf("layer %s has %q, %v", id, content, err)
		}
		if err := l.FreshWork(); err != nil {
			t.Error(err)
		}
		unix.Close(upper)
		l.Close()
		if id != "baselayer" && id != "rolledlayer" {
			if err := s.Remove(id); err != nil {
				t.Error(err)
			}
		}
	}
	snapshots, err := s.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, id := range snapshots {
		there[id] = true
		f, err := s.OpenSnapshot(id)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := whole(int(f.Fd())); err != nil || content == "" {
			t.Errorf("snapshot %s has %q, %v", id, content, err)
		}
		f.Close()
		if id != "snapshota" && id != "snapshotb" {
			if err := s.RemoveSnapshot(id); err != nil {
				t.Error(err)
			}
		}
	}
	for _, id := range kept {
		if !there[id] {
			t.Errorf("the snapshot %s was made for good, and is gone", id)
		}
	}
	volumes, err := s.Volumes()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range volumes {
		v, err := s.OpenVolume(id)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(v.Fd()), &st); err != nil || st.Uid != userID {
			t.Errorf("volume %s belongs to %d, %v", id, st.Uid, err)
		}
		v.Close()
		if err := s.RemoveVolume(id); err != nil {
			t.Error(err)
		}
	}
}
