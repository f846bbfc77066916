// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
)

// treeRecipe makes a small real image: a directory with one file. Each of its
// stages may be given a step of the test's own.
func treeRecipe(revision int, copying func(ctx context.Context, w *work) error) recipe {
	return recipe{
		Entry:    Entry{Name: "tree", Title: "one file", Aliases: []string{"wood"}},
		Contents: map[string]int{"revision": revision},
		Env:      map[string]string{"PATH": "/bin"},
		Stages: []stage{
			{Name: "copy", Weight: 3, Run: func(ctx context.Context, w *work) error {
				if err := os.RemoveAll(w.root); err != nil {
					return err
				}
				if err := os.MkdirAll(filepath.Join(w.root, "etc"), 0o755); err != nil {
					return err
				}
				if copying != nil {
					if err := copying(ctx, w); err != nil {
						return err
					}
				}
				return os.WriteFile(filepath.Join(w.root, "etc/leaf"), []byte("green\n"), 0o644)
			}},
			{Name: "configure", Weight: 1, Run: func(_ context.Context, w *work) error {
				w.resolved("leaf", "1")
				return nil
			}},
		},
		Inspect: func(_ context.Context, w *work) (contents, error) {
			data, err := os.ReadFile(filepath.Join(w.root, "etc/leaf"))
			return contents{map[string]string{"leaf": strings.TrimSpace(string(data))}, []string{"bark"}}, err
		},
	}
}

// visible lists what lies under a name's directory and could be taken for an image, but for the log of the last build.
func visible(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "tree"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != buildLogName {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestEnsure(t *testing.T) {
	t.Run("BuildsAnImageThatAllSpellingsFind", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, nil))
		built, err := s.Ensure(t.Context(), "wood")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"bark"}, built.Absent); diff != "" {
			t.Errorf("absent (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"leaf": "green"}, built.Versions); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
		if built.Files != 3 || built.SizeBytes <= 0 {
			t.Errorf("it has %d entries in %d bytes, want 3 in more than 0", built.Files, built.SizeBytes)
		}
		if data, err := os.ReadFile(filepath.Join(built.Root, "etc/leaf")); err != nil || string(data) != "green\n" {
			t.Errorf("its file holds %q (%v)", data, err)
		}
		again := openDir(t, s.dir, treeRecipe(1, nil))
		for _, name := range []string{"", "default", "tree", "wood"} {
			found, err := again.Find(t.Context(), name)
			if err != nil {
				t.Fatalf("Find(%q): %v", name, err)
			}
			if diff := cmp.Diff(built, found, cmp.AllowUnexported(Image{})); diff != "" {
				t.Errorf("Find(%q) (-built +found):\n%s", name, diff)
			}
		}
		for _, digest := range []string{built.Digest, built.Digest[7:], built.Digest[7:19]} {
			if found, err := again.FindDigest("tree", digest); err != nil || found.Root != built.Root {
				t.Errorf("FindDigest(%q) = %q, %v", digest, found.Root, err)
			}
		}
		other := built.Digest[7:19] + strings.Repeat("0", 52)
		if _, err := again.FindDigest("tree", other); !fault.Is(err, fault.NotFound) {
			t.Errorf("FindDigest of another digest with the same beginning: %v", err)
		}
	})

	t.Run("FiftyWaitersShareOneBuild", func(t *testing.T) {
		var builds atomic.Int32
		start := make(chan struct{})
		s := openTest(t, treeRecipe(1, func(ctx context.Context, _ *work) error {
			builds.Add(1)
			select {
			case <-start:
			case <-ctx.Done():
			}
			return ctx.Err()
		}))
		roots := make([]string, 50)
		var wg sync.WaitGroup
		for i := range roots {
			wg.Go(func() {
				img, err := s.Ensure(t.Context(), "tree")
				if err != nil {
					t.Errorf("waiter %d: %v", i, err)
				}
				roots[i] = img.Root
			})
		}
		// One more that goes away does not end what the others wait for.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Ensure(ctx, "tree"); !errors.Is(err, context.Canceled) {
			t.Errorf("a waiter that went away got %v", err)
		}
		close(start)
		wg.Wait()
		if got := builds.Load(); got != 1 {
			t.Errorf("%d builds ran, want 1", got)
		}
		for i, root := range roots {
			if root == "" || root != roots[0] {
				t.Errorf("waiter %d got %q, waiter 0 %q", i, root, roots[0])
			}
		}
	})

	t.Run("NothingIsSeenBeforeItIsWhole", func(t *testing.T) {
		dir := t.TempDir()
		var s *Store
		s = openDir(t, dir, treeRecipe(1, func(ctx context.Context, _ *work) error {
			if names := visible(t, dir); names != nil {
				t.Errorf("while it is built there is %q", names)
			}
			if _, err := s.Find(ctx, "tree"); !fault.Is(err, fault.NotFound) {
				t.Errorf("while it is built Find gives %v", err)
			}
			list, err := s.List(ctx)
			if err != nil || list[0].State != Building || list[0].Stage != "copy" {
				t.Errorf("while it is built List gives %+v, %v", list, err)
			}
			return nil
		}))
		img, err := s.Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{img.Digest[7:19]}, visible(t, dir)); diff != "" {
			t.Errorf("after the build (-want +got):\n%s", diff)
		}
		entries, err := os.ReadDir(filepath.Dir(img.Root))
		if err != nil || len(entries) != 2 {
			t.Errorf("the image's directory holds %v (%v), want the root and its manifest", entries, err)
		}
	})

	t.Run("AFailureCarriesTheLastLinesAndIsTriedAgain", func(t *testing.T) {
		broken := true
		s := openTest(t, treeRecipe(1, func(_ context.Context, w *work) error {
			if !broken {
				return nil
			}
			for i := range 1000 {
				fmt.Fprintf(w.lines, "line %d %s\n", i, strings.Repeat("x", 1000))
			}
			fmt.Fprint(w.lines, "\x1b[31mthe mirror is away")
			return errors.New("exit status 100")
		}))
		_, err := s.Ensure(t.Context(), "tree")
		if !fault.Is(err, fault.Unavailable) {
			t.Fatalf("Ensure gives %v, want unavailable", err)
		}
		if msg := fault.As(err).Message; !strings.Contains(msg, `stage "copy"`) || !strings.HasSuffix(msg, "[31mthe mirror is away") {
			t.Errorf("the message is %q", msg)
		}
		list, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		st := list[0]
		if st.State != Failed || st.Stage != "copy" || len(st.Output) != tailLines || len(st.Output[0]) > tailLineSize {
			t.Errorf("the status is %s in %q with %d lines", st.State, st.Stage, len(st.Output))
		}
		if names := visible(t, s.dir); names != nil {
			t.Errorf("a failed build left %q", names)
		}
		broken = false
		if _, err := s.Ensure(t.Context(), "tree"); err != nil {
			t.Errorf("the second try: %v", err)
		}
		if list, err := s.List(t.Context()); err != nil || list[0].State != Ready || list[0].Err != nil {
			t.Errorf("after it the status is %+v, %v", list, err)
		}
	})

	t.Run("AFullDiskIsNamedAsSuch", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, func(_ context.Context, w *work) error {
			fmt.Fprintln(w.lines, "dpkg: error: failed to write: No space left on device")
			return errors.New("exit status 1")
		}))
		if _, err := s.Ensure(t.Context(), "tree"); !fault.Is(err, fault.Full) {
			t.Errorf("Ensure gives %v, want exhausted", err)
		}
	})

	t.Run("CloseEndsABuildAndRefusesTheNext", func(t *testing.T) {
		entered := make(chan struct{})
		s := openTest(t, treeRecipe(1, func(ctx context.Context, _ *work) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}))
		result := make(chan error)
		go func() {
			_, err := s.Ensure(t.Context(), "tree")
			result <- err
		}()
		<-entered
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		if err := <-result; !fault.Is(err, fault.Unavailable) {
			t.Errorf("the waiter got %v, want unavailable", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, err := s.Ensure(t.Context(), "tree"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Ensure after Close gives %v, want unavailable", err)
		}
	})
}

func TestFind(t *testing.T) {
	t.Run("AHitNeedsNoDisk", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, nil))
		want, err := s.Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(s.dir, s.dir+".away"); err != nil {
			t.Fatal(err)
		}
		got, err := s.Find(t.Context(), "wood")
		if err != nil || got.Root != want.Root {
			t.Errorf("Find = %q, %v", got.Root, err)
		}
		if allocs := testing.AllocsPerRun(100, func() { _, _ = s.Find(t.Context(), "tree") }); allocs > 4 {
			t.Errorf("a hit allocates %v times", allocs)
		}
	})

	t.Run("AnOlderRecipesImageIsFoundOnlyByItsDigest", func(t *testing.T) {
		dir := t.TempDir()
		old, err := openDir(t, dir, treeRecipe(1, nil)).Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		s := openDir(t, dir, treeRecipe(2, nil))
		if _, err := s.Find(t.Context(), "tree"); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find gives %v, want not found", err)
		}
		fresh, err := s.Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		if fresh.Digest == old.Digest {
			t.Error("both recipes give one digest")
		}
		if found, err := s.FindDigest("tree", old.Digest); err != nil || found.Root != old.Root {
			t.Errorf("FindDigest = %q, %v", found.Root, err)
		}
	})

	t.Run("WhatIsNotAnImageIsPassedOver", func(t *testing.T) {
		dir := t.TempDir()
		s := openDir(t, dir, treeRecipe(1, nil))
		img, err := s.Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		manifestText, err := os.ReadFile(filepath.Join(filepath.Dir(img.Root), manifestName))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"000000000001": "", "000000000002": "{", "000000000003": `{"schema":99}`,
			"000000000004": string(manifestText), // another directory's
			"000000000005": strings.ReplaceAll(string(manifestText), img.Digest, "sha256:../../../../etc"),
		} {
			if err := os.MkdirAll(filepath.Join(dir, "tree", name, rootName), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "tree", name, manifestName), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		found, err := openDir(t, dir, treeRecipe(1, nil)).Find(t.Context(), "tree")
		if err != nil || found.Root != img.Root {
			t.Errorf("Find = %q, %v; want %q", found.Root, err, img.Root)
		}
	})

	t.Run("TheNewestOfTheRecipeIsCurrent", func(t *testing.T) {
		dir := t.TempDir()
		leaf := "1"
		r := treeRecipe(1, nil)
		r.Stages[1].Run = func(_ context.Context, w *work) error { w.resolved("leaf", leaf); return nil }
		first, err := openDir(t, dir, r).Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		// As if the first had been built elsewhere and was put here later.
		if err := os.Rename(filepath.Dir(first.Root), filepath.Join(dir, "kept")); err != nil {
			t.Fatal(err)
		}
		leaf = "2"
		second, err := openDir(t, dir, r).Ensure(t.Context(), "tree")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "kept"), filepath.Dir(first.Root)); err != nil {
			t.Fatal(err)
		}
		if found, err := openDir(t, dir, r).Find(t.Context(), "tree"); err != nil || found.Digest != second.Digest {
			t.Errorf("Find = %s, %v; want %s", found.Digest, err, second.Digest)
		}
	})
}

func TestOpen(t *testing.T) {
	t.Run("RefusesNoDirectory", func(t *testing.T) {
		if _, err := Open(Options{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("Open gives %v, want invalid", err)
		}
	})
	t.Run("RefusesADirectoryWithAControlCharacter", func(t *testing.T) {
		if _, err := Open(Options{Dir: filepath.Join(t.TempDir(), "a\nb")}); !fault.Is(err, fault.Invalid) {
			t.Errorf("Open gives %v, want invalid", err)
		}
	})

	// leftover is what a killed build left.
	leftover := func(t *testing.T, dir, recipeHash string, age time.Duration) string {
		t.Helper()
		path := filepath.Join(dir, "tree", workName)
		if err := os.MkdirAll(filepath.Join(path, rootName, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		w := &work{dir: path, state: state{Recipe: recipeHash, Started: time.Now().Add(-age)}}
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	hash := treeRecipe(1, nil).hash()
	t.Run("RemovesALeftoverOfAnotherRecipe", func(t *testing.T) {
		dir := t.TempDir()
		path := leftover(t, dir, "other", time.Minute)
		openDir(t, dir, treeRecipe(1, nil))
		if exists(path) {
			t.Error("it is still there")
		}
	})
	t.Run("RemovesAnOldLeftover", func(t *testing.T) {
		dir := t.TempDir()
		path := leftover(t, dir, hash, resumable)
		openDir(t, dir, treeRecipe(1, nil))
		if exists(path) {
			t.Error("it is still there")
		}
	})
	t.Run("RemovesALeftoverThatSaysNothing", func(t *testing.T) {
		dir := t.TempDir()
		path := leftover(t, dir, hash, time.Minute)
		if err := os.WriteFile(filepath.Join(path, stateName), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
		trash := filepath.Join(dir, "tree", trashName, "half")
		if err := os.MkdirAll(trash, 0o755); err != nil {
			t.Fatal(err)
		}
		openDir(t, dir, treeRecipe(1, nil))
		if exists(path) || exists(filepath.Dir(trash)) {
			t.Error("it is still there")
		}
	})
	t.Run("KeepsALeftoverThatTheNextBuildContinues", func(t *testing.T) {
		dir := t.TempDir()
		path := leftover(t, dir, hash, time.Minute)
		openDir(t, dir, treeRecipe(1, nil))
		if !exists(path) {
			t.Error("it is gone")
		}
	})
	t.Run("TouchesNothingWhileAnotherBuilds", func(t *testing.T) {
		dir := t.TempDir()
		l, err := tryLock(dir)
		if err != nil || l == nil {
			t.Fatalf("lock: %v", err)
		}
		defer l.release()
		path := leftover(t, dir, "other", time.Minute)
		openDir(t, dir, treeRecipe(1, nil))
		if !exists(path) {
			t.Error("it is gone")
		}
	})
	t.Run("FollowsNoLinkWhenItCleans", func(t *testing.T) {
		dir, outside := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "precious"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		path := leftover(t, dir, "other", time.Minute)
		if err := os.Symlink(outside, filepath.Join(path, rootName, "etc", "out")); err != nil {
			t.Fatal(err)
		}
		openDir(t, dir, treeRecipe(1, nil))
		if exists(path) || !exists(filepath.Join(outside, "precious")) {
			t.Error("the link was followed, or the leftover is still there")
		}
	})
}
