// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/fault"
)

// ensure builds what a test begins with.
func ensure(t *testing.T, s *Store, name string) Image {
	t.Helper()
	img, err := s.Ensure(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// withdraw withdraws what has to be there.
func withdraw(t *testing.T, s *Store, digests ...string) *Withdrawal {
	t.Helper()
	w, err := s.Withdraw("tree", digests, false)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rest lists everything below a name's directory but the log of the last build, which stays.
func rest(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "tree"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != buildLogName {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestWithdraw(t *testing.T) {
	t.Run("NobodyFindsItAndWhatIsLeftIsFoundAgain", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, nil))
		img := ensure(t, s, "tree")
		w := withdraw(t, s, img.Digest)
		if _, err := s.Find(t.Context(), "tree"); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find: %v", err)
		}
		if _, err := s.FindDigest("tree", img.Digest); !fault.Is(err, fault.Conflict) || fault.As(err).Retry == 0 {
			t.Errorf("FindDigest: %v", err)
		}
		if all, err := s.Builds("tree"); err != nil || len(all) != 0 {
			t.Errorf("Builds: %v, %v", all, err)
		}
		if _, err := s.Withdraw("wood", nil, true); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second one: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Ensure(ctx, "tree"); !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait: %v", err)
		}
		got := make(chan Image)
		go func() {
			again, err := s.Ensure(t.Context(), "tree")
			if err != nil {
				t.Error(err)
			}
			got <- again
		}()
		w.End()
		if again := <-got; again.Root != img.Root {
			t.Errorf("who waited got %q, want %q", again.Root, img.Root)
		}
		if again, err := s.FindDigest("tree", img.Digest); err != nil || again.Root != img.Root {
			t.Errorf("FindDigest: %v, %v", again.Root, err)
		}
	})

	t.Run("RemovedIsGoneAndIsBuiltAnew", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, nil))
		img := ensure(t, s, "tree")
		w := withdraw(t, s)
		n, err := w.Remove()
		if err != nil || n != img.SizeBytes {
			t.Errorf("Remove: %d, %v; want %d", n, err, img.SizeBytes)
		}
		if left := rest(t, s.dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		w.End()
		if _, err := s.FindDigest("tree", img.Digest); !fault.Is(err, fault.NotFound) {
			t.Errorf("FindDigest: %v", err)
		}
		if again := ensure(t, s, "tree"); again.Digest != img.Digest || again.Created.Equal(img.Created) {
			t.Errorf("built %v, was %v", again, img)
		}
		if _, err := s.FindDigest("tree", img.Digest); err != nil {
			t.Error(err)
		}
	})

	t.Run("OneBuildOfSeveral", func(t *testing.T) {
		dir := t.TempDir()
		old := ensure(t, openDir(t, dir, treeRecipe(1, nil)), "tree")
		s := openDir(t, dir, treeRecipe(2, nil))
		img := ensure(t, s, "tree")
		all, err := s.Builds("wood")
		if err != nil || len(all) != 2 || !all[0].Current || all[0].Digest != img.Digest || all[1].Current || all[1].Digest != old.Digest {
			t.Fatalf("%+v, %v", all, err)
		}
		// The first store still has it, as another server would.
		w := withdraw(t, s, old.Digest[7:19])
		if _, err := w.Remove(); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "another server") {
			t.Errorf("while another server uses it: %v", err)
		}
		w.End()
		if _, err := s.FindDigest("tree", old.Digest); err != nil {
			t.Errorf("what was refused is gone: %v", err)
		}
	})

	t.Run("AnotherServerThatHasEndedHoldsNothing", func(t *testing.T) {
		dir := t.TempDir()
		first := openDir(t, dir, treeRecipe(1, nil))
		old := ensure(t, first, "tree")
		s := openDir(t, dir, treeRecipe(2, nil))
		img := ensure(t, s, "tree")
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		w := withdraw(t, s, old.Digest)
		if _, err := w.Remove(); err != nil {
			t.Error(err)
		}
		w.End()
		if all, err := s.Builds("tree"); err != nil || len(all) != 1 || all[0].Digest != img.Digest {
			t.Errorf("%v, %v", all, err)
		}
	})

	t.Run("WhatAKillLeftIsRemovedAtTheNextStart", func(t *testing.T) {
		dir := t.TempDir()
		s := openDir(t, dir, treeRecipe(1, nil))
		img := ensure(t, s, "tree")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Dir(img.Root)
		if err := os.Rename(path, filepath.Join(filepath.Dir(path), removedPrefix+filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, removedPrefix+cacheName, "apt"), 0o755); err != nil {
			t.Fatal(err)
		}
		again := openDir(t, dir, treeRecipe(1, nil))
		if left := rest(t, dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if _, err := os.Lstat(filepath.Join(dir, removedPrefix+cacheName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the cache: %v", err)
		}
		if _, err := again.FindDigest("tree", img.Digest); !fault.Is(err, fault.NotFound) {
			t.Errorf("FindDigest: %v", err)
		}
	})

	t.Run("ABuildThatGoesOnIsEndedByForceOnly", func(t *testing.T) {
		begun := make(chan struct{}, 8)
		var hang sync.Once
		s := openTest(t, treeRecipe(1, func(ctx context.Context, _ *work) (err error) {
			hang.Do(func() {
				begun <- struct{}{}
				<-ctx.Done()
				err = ctx.Err()
			})
			return err
		}))
		failed := make(chan error, 1)
		go func() {
			_, err := s.Ensure(t.Context(), "tree")
			failed <- err
		}()
		<-begun
		if _, err := s.Withdraw("tree", nil, false); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "being built") {
			t.Errorf("without force: %v", err)
		}
		w, err := s.Withdraw("tree", nil, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !fault.Is(err, fault.Canceled) {
			t.Errorf("who waited for the build: %v", err)
		}
		if _, err := w.Remove(); err != nil {
			t.Error(err)
		}
		w.End()
		if left := rest(t, s.dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if all, err := s.List(t.Context()); err != nil || all[0].State != Missing || all[0].Err != nil {
			t.Errorf("%+v, %v", all, err)
		}
		ensure(t, s, "tree")
	})

	t.Run("OtherNamesAndDigestsAreRefused", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, nil))
		img := ensure(t, s, "tree")
		other := img.Digest[7:19] + strings.Repeat("0", 52)
		if err := os.Symlink("/etc", filepath.Join(s.dir, "tree", strings.Repeat("a", digestDir))); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, digest string
			want         fault.Code
		}{
			{"../tree", img.Digest, fault.NotFound},
			{"tree/../tree", img.Digest, fault.NotFound},
			{"tree/" + img.Digest[7:19], "", fault.NotFound},
			{"cache", "", fault.NotFound},
			{".lock", "", fault.NotFound},
			{"tree\x00", img.Digest, fault.Invalid},
			{"tree", "../../etc", fault.Invalid},
			{"tree", ".building", fault.Invalid},
			{"tree", other, fault.NotFound},
			{"tree", strings.Repeat("a", digestDir), fault.NotFound},
			{"tree", "sha256:" + strings.Repeat("f", 64), fault.NotFound},
		} {
			var digests []string
			if c.digest != "" {
				digests = []string{c.digest}
			}
			if _, err := s.Withdraw(c.name, digests, true); fault.Of(err) != c.want {
				t.Errorf("Withdraw(%q, %q): %v, want %s", c.name, c.digest, err, c.want)
			}
		}
		if again, err := s.Find(t.Context(), "tree"); err != nil || again.Digest != img.Digest {
			t.Errorf("%v, %v", again, err)
		}
	})

	// What the engine does: a record first, then a look for the build; a removal does it the other way around.
	t.Run("NobodyIsLeftWithoutTheBuildThatItUses", func(t *testing.T) {
		s := openTest(t, treeRecipe(1, nil))
		var mu sync.Mutex
		users := 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					img, err := s.Ensure(t.Context(), "tree")
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					users++
					mu.Unlock()
					if _, err := s.FindDigest("tree", img.Digest); err == nil {
						if _, err := os.Stat(filepath.Join(img.Root, "etc/leaf")); err != nil {
							t.Errorf("it is in use, and gone: %v", err)
						}
					} else if c := fault.Of(err); c != fault.Conflict && c != fault.NotFound {
						t.Error(err)
					}
					mu.Lock()
					users--
					mu.Unlock()
				}
			})
		}
		over := make(chan struct{})
		go func() { wg.Wait(); close(over) }()
		removed := 0
		for done := false; !done; {
			select {
			case <-over:
				done = true
			default:
			}
			w, err := s.Withdraw("tree", nil, false)
			if fault.Is(err, fault.Conflict) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			used := users > 0
			mu.Unlock()
			if !used {
				if _, err := w.Remove(); err == nil {
					removed++
				} else if !fault.Is(err, fault.Conflict) { // one that was just found
					t.Error(err)
				}
			}
			w.End()
		}
		t.Logf("removed %d times", removed)
	})
}

func TestRebuild(t *testing.T) {
	t.Run("TheCurrentOneIsUsedMeanwhile", func(t *testing.T) {
		begun, end := make(chan struct{}, 1), make(chan struct{})
		times := 0
		s := openTest(t, treeRecipe(1, func(ctx context.Context, _ *work) error {
			if times++; times == 1 {
				return nil
			}
			begun <- struct{}{}
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
		img := ensure(t, s, "tree")
		got := make(chan error, 1)
		go func() {
			again, err := s.Rebuild(t.Context(), "wood")
			if err == nil && again.Digest != img.Digest {
				err = errors.New("the same versions have another digest")
			}
			got <- err
		}()
		<-begun
		if now, err := s.Ensure(t.Context(), "tree"); err != nil || now.Root != img.Root {
			t.Errorf("meanwhile: %v, %v", now, err)
		}
		if all, err := s.List(t.Context()); err != nil || all[0].State != Building || all[0].Image.Digest != img.Digest {
			t.Errorf("meanwhile: %+v, %v", all, err)
		}
		close(end)
		if err := <-got; err != nil {
			t.Error(err)
		}
		if times != 2 {
			t.Errorf("it was built %d times", times)
		}
		if left := rest(t, s.dir); !slices.Equal(left, []string{dirOf(img)}) {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("OneThatFailsLeavesTheCurrentOneAndSaysSo", func(t *testing.T) {
		times := 0
		s := openTest(t, treeRecipe(1, func(context.Context, *work) error {
			if times++; times == 2 {
				return errors.New("no leaf")
			}
			return nil
		}))
		img := ensure(t, s, "tree")
		if _, err := s.Rebuild(t.Context(), "tree"); err == nil {
			t.Error("it succeeded")
		}
		all, err := s.List(t.Context())
		if err != nil || all[0].State != Ready || all[0].Image.Digest != img.Digest || all[0].Err == nil {
			t.Errorf("%+v, %v", all, err)
		}
		if _, err := s.Rebuild(t.Context(), "tree"); err != nil {
			t.Error(err)
		}
		if all, err := s.List(t.Context()); err != nil || all[0].Err != nil {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestRemoveCache(t *testing.T) {
	s := openTest(t, treeRecipe(1, nil))
	if n, err := s.RemoveCache(false); err != nil || n != 0 {
		t.Errorf("nothing: %d, %v", n, err)
	}
	dir := filepath.Join(s.dir, cacheName, "apt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.deb"), make([]byte, 1<<16), 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := s.RemoveCache(true)
	if err != nil || n < 1<<16 {
		t.Errorf("dry: %d, %v", n, err)
	}
	l, err := tryLock(s.dir)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	if _, err := s.RemoveCache(false); !fault.Is(err, fault.Conflict) {
		t.Errorf("while an image is built: %v", err)
	}
	l.release()
	if got, err := s.RemoveCache(false); err != nil || got != n {
		t.Errorf("%d, %v; want %d", got, err, n)
	}
	if _, err := os.Lstat(filepath.Join(s.dir, cacheName)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
