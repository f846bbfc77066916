// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeSource brings a script that says its version.
type fakeSource struct {
	version string
	fail    error
	asked   int
}

func (*fakeSource) Name() string  { return "parcel" }
func (*fakeSource) Offer() string { return "--fetch would get a parcel" }

func (f *fakeSource) Get(_ context.Context, _ *Finder, root string) error {
	f.asked++
	bin := filepath.Join(root, "usr", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	script := "#!/bin/sh\necho " + f.version + "\necho more words\n"
	return errors.Join(f.fail, os.WriteFile(filepath.Join(bin, "sandpit-bench-fake"), []byte(script), 0o755))
}

func TestPrograms(t *testing.T) {
	const fake = "sandpit-bench-fake"
	find := func(t *testing.T, p *Finder, from *fakeSource) Kit {
		t.Helper()
		k, err := p.Find(t.Context(), fake, from)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}

	t.Run("ThatAreInstalledAreUsed", func(t *testing.T) {
		from := &fakeSource{}
		p := &Finder{Cache: t.TempDir(), Scratch: t.TempDir(), Fetch: true}
		k, err := p.Find(t.Context(), "sh", from)
		if err != nil || k.root != "" || from.asked != 0 {
			t.Errorf("got %+v after %d fetches: %v; want the installed one", k, from.asked, err)
		}
	})

	t.Run("AreFetchedOnceAndWhenAsked", func(t *testing.T) {
		from := &fakeSource{version: "7.1"}
		cache := t.TempDir()
		p := &Finder{Cache: cache, Scratch: t.TempDir()}
		_, err := p.Find(t.Context(), fake, from)
		if err == nil || err.Error() != "not installed; --fetch would get a parcel" || from.asked != 0 {
			t.Fatalf("unasked: %v after %d fetches", err, from.asked)
		}
		p.Fetch = true
		k := find(t, p, from)
		if v, err := k.Version(t.Context(), fake); v != "7.1" || err != nil {
			t.Errorf("version is %q: %v", v, err)
		}
		// Another run, which may not fetch.
		later := find(t, &Finder{Cache: cache, Scratch: t.TempDir()}, from)
		if later != k || from.asked != 1 {
			t.Errorf("later got %+v after %d fetches, want %+v after 1", later, from.asked, k)
		}
		if names := entries(t, cache); !slices.Equal(names, []string{".lock", "parcel"}) {
			t.Errorf("the cache holds %q, want the parcel and the lock alone", names)
		}
	})

	t.Run("GoToTheRunsDirectoryWithoutACache", func(t *testing.T) {
		scratch := filepath.Join(t.TempDir(), "made", "when", "needed")
		k := find(t, &Finder{Scratch: scratch, Fetch: true}, &fakeSource{version: "1"})
		if !strings.HasPrefix(k.Path(fake), scratch+"/") {
			t.Errorf("is at %s, want it below %s", k.Path(fake), scratch)
		}
	})

	t.Run("ThatAnotherMayHaveChangedAreNotUsed", func(t *testing.T) {
		for name, spoil := range map[string]func(program, version string) error{
			"AnotherVersion": func(_, version string) error { return os.WriteFile(version, []byte("7.2"), 0o644) },
			"Writable":       func(program, _ string) error { return os.Chmod(program, 0o777) },
			"WritableTree":   func(_, version string) error { return os.Chmod(filepath.Dir(version), 0o777) },
			"Broken":         func(program, _ string) error { return os.WriteFile(program, []byte("#!/nowhere\n"), 0o755) },
			"Link": func(program, _ string) error {
				return errors.Join(os.Rename(program, program+"-moved"), os.Symlink(program+"-moved", program))
			},
		} {
			t.Run(name, func(t *testing.T) {
				from := &fakeSource{version: "7.1"}
				p := &Finder{Cache: t.TempDir(), Scratch: t.TempDir(), Fetch: true}
				k := find(t, p, from)
				if err := spoil(k.Path(fake), filepath.Join(filepath.Dir(k.root), kitVersion)); err != nil {
					t.Fatal(err)
				}
				p.Fetch = false
				if _, err := p.Find(t.Context(), fake, from); err == nil || !strings.Contains(err.Error(), "is not used") {
					t.Errorf("unasked: got %v, want that what was fetched is not used", err)
				}
				p.Fetch = true
				if find(t, p, from); from.asked != 2 {
					t.Errorf("was fetched %d times, want anew", from.asked)
				}
				p.Fetch = false
				find(t, p, from)
			})
		}
	})

	t.Run("LeaveNothingWhereTheyFail", func(t *testing.T) {
		for name, from := range map[string]*fakeSource{
			"Fetch": {version: "1", fail: errors.New("no way there")},
			"Start": {version: "1; exit 3"},
		} {
			t.Run(name, func(t *testing.T) {
				cache := t.TempDir()
				if _, err := (&Finder{Cache: cache, Scratch: t.TempDir(), Fetch: true}).Find(t.Context(), fake, from); err == nil {
					t.Error("worked")
				}
				if names := entries(t, cache); !slices.Equal(names, []string{".lock"}) {
					t.Errorf("left %q", names)
				}
			})
		}
	})

	t.Run("OfAKitFindEachOtherAndTheirLibraries", func(t *testing.T) {
		root := t.TempDir()
		libs := filepath.Join(root, "usr", "lib", "x86_64-linux-gnu")
		if err := os.MkdirAll(libs, 0o755); err != nil {
			t.Fatal(err)
		}
		env := Kit{root: root}.environ()
		path := "PATH=" + root + "/usr/sbin:" + root + "/usr/bin:" + root + "/sbin:" + root + "/bin:" + os.Getenv("PATH")
		if !slices.Contains(env, path) || !slices.Contains(env, "LD_LIBRARY_PATH="+libs) {
			t.Errorf("got %q", env[len(env)-2:])
		}
		if env := (Kit{}).environ(); !slices.Equal(env, os.Environ()) {
			t.Error("an installed program has another environment than ours")
		}
	})
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
