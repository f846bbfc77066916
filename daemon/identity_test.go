// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"database/sql"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/layer"
	"sandpit.dev/store/sqlstore"
)

// installation is a data directory on which real servers are started, with a loop store.
type installation struct {
	t   *testing.T
	cfg Config
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime does")
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.Listen, cfg.Data, cfg.RunDir, cfg.PrebuildImage = "127.0.0.1:0", filepath.Join(dir, "data"), filepath.Join(dir, "run"), false
	cfg.Images.Dir, cfg.Pools = filepath.Join(dir, "images"), nil
	return &installation{t, cfg}
}

// start starts a server; stop ends it and waits. An error is why it did not start.
func (i *installation) start(adopt Adopt) (url string, stop func(), err error) {
	i.t.Helper()
	ctx, cancel := context.WithCancel(i.t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, i.cfg, Options{Log: io.Discard, Adopt: adopt, Ready: func(url string) { ready <- url }})
	}()
	select {
	case url := <-ready:
		return url, func() {
			i.t.Helper()
			cancel()
			if err := <-ended; err != nil {
				i.t.Errorf("the server ended with %v", err)
			}
		}, nil
	case err := <-ended:
		cancel()
		return "", nil, err
	}
}

// serves starts a server and ends it.
func (i *installation) serves(adopt Adopt) {
	i.t.Helper()
	_, stop, err := i.start(adopt)
	if err != nil {
		i.t.Fatalf("a server is refused: %v (%s)", err, fault.As(err).Remedy)
	}
	stop()
}

// refused holds that no server starts, with these words in the error and this one in the
// remedy, that doctor says the same, and that nothing in the directory changes by it.
func (i *installation) refused(what, remedy string) {
	i.t.Helper()
	before := i.listing()
	_, stop, err := i.start(Adopt{})
	if err == nil {
		stop()
		i.t.Fatalf("a server started; want that it says %q", what)
	}
	if e := fault.As(err); !strings.Contains(e.Message, what) || !strings.Contains(e.Remedy, remedy) {
		i.t.Errorf("got %q (%s); want %q (%s)", e.Message, e.Remedy, what, remedy)
	}
	checks := Repair(i.t.Context(), i.cfg, false)
	if !slices.ContainsFunc(checks, func(c Check) bool {
		return c.Name == "installation" && c.Status == Failed && strings.Contains(c.Detail, what) && strings.Contains(c.Remedy, remedy)
	}) {
		i.t.Errorf("doctor does not say %q: %+v", what, checks)
	}
	if after := i.listing(); !slices.Equal(before, after) {
		i.t.Errorf("the server that was refused changed what is there:\n%v\n%v", before, after)
	}
}

func (i *installation) listing() (names []string) {
	i.t.Helper()
	err := filepath.WalkDir(i.cfg.Data, func(path string, _ os.DirEntry, err error) error {
		// The log of the records comes and goes with their readers.
		if !strings.HasSuffix(path, "-wal") && !strings.HasSuffix(path, "-shm") && filepath.Base(path) != "instances" {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return names
}

func (i *installation) path(parts ...string) string {
	return filepath.Join(append([]string{i.cfg.Data}, parts...)...)
}

func (i *installation) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

// ids are those of the file, the records and the store.
func (i *installation) ids() (file, records, store string) {
	i.t.Helper()
	f, err := readIdentity(i.cfg.Data)
	i.must(err)
	if f != nil {
		file = f.ID
	}
	c, err := sqlstore.Look(i.t.Context(), i.path(dbFile))
	i.must(err)
	store, err = layer.ReadID(i.t.Context(), i.path("native", "layers"))
	i.must(err)
	return file, c.ID, store
}

// one checks that all pieces have one id, and returns it.
func (i *installation) one() string {
	i.t.Helper()
	file, records, store := i.ids()
	if file == "" || file != records || file != store {
		i.t.Fatalf("the ids are %q, %q and %q", file, records, store)
	}
	return file
}

// forget makes it an installation of a version without ids.
func (i *installation) forget() {
	i.t.Helper()
	i.must(os.Remove(i.path(IdentityFile)))
	i.forgetRecords()
	i.forgetStore()
}

func (i *installation) forgetRecords() {
	i.t.Helper()
	i.sql("DELETE FROM identity")
}

// insertVolume makes a record that has something in the store.
const insertVolume = "INSERT INTO volumes (id, project, name, runtime, size_mb, state, created_at, created_by) VALUES ('vol_1', 'default', 'v', 'native', 0, 'ready', 1, '')"

func (i *installation) sql(text string) {
	i.t.Helper()
	db, err := sql.Open("sqlite", i.path(dbFile))
	i.must(err)
	_, err = db.ExecContext(i.t.Context(), text)
	i.must(err)
	i.must(db.Close())
}

// forgetStore removes the id of the loop store.
func (i *installation) forgetStore() {
	i.t.Helper()
	at := i.t.TempDir()
	i.run("mount", "-o", "loop", i.path("native", "layers", "layers.btrfs"), at)
	err := os.Remove(filepath.Join(at, "id"))
	i.run("umount", at)
	i.must(err)
}

func (i *installation) run(name string, args ...string) {
	i.t.Helper()
	if out, err := exec.CommandContext(i.t.Context(), name, args...).CombinedOutput(); err != nil {
		i.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

func TestMissingPieces(t *testing.T) {
	records := func(i *installation) string { return i.path(dbFile) }
	store := func(i *installation) string { return i.path("native", "layers", "layers.btrfs") }

	t.Run("HaveOneIdAndKeepIt", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		id := i.one()
		i.serves(Adopt{Records: true, Store: true, Copy: true}) // which change nothing where nothing is wrong
		if again := i.one(); again != id {
			t.Errorf("the id was %s, and is %s", id, again)
		}
		if got := Repair(t.Context(), i.cfg, false); slices.ContainsFunc(got, func(c Check) bool { return c.Status != Passed }) {
			t.Errorf("doctor finds %+v", got)
		}
		if st, err := os.Stat(i.path(IdentityFile)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v", st, err)
		}
	})
	t.Run("RecordsThatAreEmpty", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		id := i.one()
		i.must(os.Truncate(records(i), 0))
		i.refused("the records are missing", "--new-records")
		i.serves(Adopt{Records: true})
		if again := i.one(); again != id {
			t.Errorf("the id was %s, and is %s", id, again)
		}
		i.serves(Adopt{})
	})
	t.Run("RecordsThatAreGone", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		aside := i.path("aside.db")
		i.must(os.Rename(records(i), aside))
		i.refused("the records are missing", "--new-records")
		i.must(os.Rename(aside, records(i)))
		i.serves(Adopt{})
	})
	t.Run("RecordsAndTheFileThatAreGone", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		i.must(os.Remove(records(i)))
		i.must(os.Remove(i.path(IdentityFile)))
		i.refused("the records are missing", "--new-records")
		i.serves(Adopt{Records: true})
		i.one()
	})
	t.Run("TheFileThatIsGoneIsMadeAnew", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		id := i.one()
		i.must(os.Remove(i.path(IdentityFile)))
		i.serves(Adopt{})
		if again := i.one(); again != id {
			t.Errorf("the id was %s, and is %s", id, again)
		}
	})
	t.Run("AFileThatIsDamaged", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		i.must(os.WriteFile(i.path(IdentityFile), []byte(`{"id": "../x"}`), 0o600))
		i.refused("is damaged", "move it away")
	})
	t.Run("AStoreThatIsGone", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		aside := i.path("aside.btrfs")
		i.must(os.Rename(store(i), aside))
		i.refused("the disks of all sandboxes are missing", "--new-store")
		i.must(os.Rename(aside, store(i)))
		i.serves(Adopt{})
		i.must(os.Remove(store(i)))
		i.serves(Adopt{Store: true})
		i.one()
	})
	t.Run("AStoreWhoseFileSystemIsNotMounted", func(t *testing.T) {
		i := newInstallation(t)
		i.cfg.Native.Layers = "plain"
		layers := i.path("native", "layers")
		i.must(os.MkdirAll(layers, 0o700))
		i.must(os.Chmod(i.cfg.Data, 0o700))
		i.run("mount", "-t", "tmpfs", "-o", "mode=0700,size=16m", "none", layers)
		mounted := true
		defer func() {
			if mounted {
				i.run("umount", layers)
			}
		}()
		i.serves(Adopt{})
		i.one()
		i.run("umount", layers)
		mounted = false
		i.refused("the disks of all sandboxes are missing", "mount the file system")
	})
	t.Run("OfTwoInstallationsExchanged", func(t *testing.T) {
		a, b := newInstallation(t), newInstallation(t)
		a.serves(Adopt{})
		b.serves(Adopt{})
		swap := func(piece func(*installation) string) {
			t.Helper()
			aside := piece(a) + ".aside"
			a.must(os.Rename(piece(a), aside))
			a.must(os.Rename(piece(b), piece(a)))
			a.must(os.Rename(aside, piece(b)))
		}
		swap(records)
		a.refused("the records in "+records(a)+" are of another installation", "--new-records")
		swap(records)
		swap(store)
		a.refused("is of another installation", "--new-store")
		b.refused("is of another installation", "--new-store")
		swap(store)
		a.serves(Adopt{})
		b.serves(Adopt{})
		swap(records)
		swap(store)
		a.refused("the records in", "--new-records")
		a.serves(Adopt{Records: true, Store: true})
		a.one()
	})
	t.Run("WithoutAnIdWhereThereWasOne", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		i.forgetRecords()
		i.refused("are others than this installation had", "--new-records")
		i.serves(Adopt{Records: true})
		i.forgetStore()
		i.refused("is another than this installation had", "--new-store")
		i.serves(Adopt{Store: true})
		i.one()
	})
}

// An installation of an earlier version gets an id, unless a piece of it is missing.
func TestAnEarlierVersionsInstallation(t *testing.T) {
	t.Run("IsAdopted", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		i.sql(insertVolume)
		i.forget()
		i.serves(Adopt{})
		i.one()
	})
	t.Run("WithoutItsRecordsIsRefused", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		i.forget()
		i.must(os.Truncate(i.path(dbFile), 0))
		i.refused("the records are missing", "--new-records")
	})
	t.Run("WithoutItsStoreIsRefused", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		i.sql(insertVolume)
		i.forget()
		i.must(os.Remove(i.path("native", "layers", "layers.btrfs")))
		i.refused("the disks of all sandboxes are missing", "--new-store")
	})
}

// A first start, or one that adopts, which ends between any two writes is gone on with.
func TestAFirstStartThatEndsOnTheWay(t *testing.T) {
	for name, undo := range map[string]func(*installation, *identity){
		"AfterTheFile": func(i *installation, f *identity) {
			f.Records, f.Store = false, false
			i.must(os.Remove(i.path(dbFile)))
			i.must(os.RemoveAll(i.path("native")))
		},
		"AfterAnEmptyDataBase": func(i *installation, f *identity) {
			f.Records, f.Store = false, false
			i.must(os.Truncate(i.path(dbFile), 0))
			i.must(os.RemoveAll(i.path("native")))
		},
		"AfterRecordsWithoutTheId": func(i *installation, f *identity) {
			f.Records, f.Store = false, false
			i.forgetRecords()
			i.must(os.RemoveAll(i.path("native")))
		},
		"AfterTheRecords": func(i *installation, f *identity) {
			f.Records, f.Store = false, false
			i.must(os.RemoveAll(i.path("native")))
		},
		"AfterAStoreWithoutTheId": func(i *installation, f *identity) {
			f.Records, f.Store = false, false
			i.forgetStore()
		},
		"AfterTheStore": func(_ *installation, f *identity) { f.Records, f.Store = false, false },
		"WithoutTheFile": func(i *installation, f *identity) {
			*f = identity{}
			i.forgetStore()
		},
		"WithoutTheFileOrAStore": func(i *installation, f *identity) {
			*f = identity{}
			i.must(os.RemoveAll(i.path("native")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			i.serves(Adopt{})
			id := i.one()
			f, err := readIdentity(i.cfg.Data)
			i.must(err)
			undo(i, f)
			if f.ID == "" {
				i.must(os.Remove(i.path(IdentityFile)))
			} else {
				i.must(f.write(i.cfg.Data))
			}
			i.serves(Adopt{})
			if again := i.one(); again != id {
				t.Errorf("the id was %s, and is %s", id, again)
			}
			i.serves(Adopt{})
		})
	}
}

// copied copies the data directory beside the original.
func (i *installation) copied() *installation {
	i.t.Helper()
	c := newInstallation(i.t)
	i.run("cp", "-a", "--sparse=always", i.cfg.Data, c.cfg.Data)
	return c
}

func TestADataDirectoryElsewhere(t *testing.T) {
	t.Run("ByALink", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		link := filepath.Join(t.TempDir(), "link")
		i.must(os.Symlink(i.cfg.Data, link))
		i.cfg.Data = link
		i.serves(Adopt{})
		i.one()
	})
	t.Run("Moved", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		id := i.one()
		c := i.copied() // as to another file system
		i.must(os.RemoveAll(i.cfg.Data))
		c.serves(Adopt{})
		if got := c.one(); got != id {
			t.Errorf("the id was %s, and is %s", id, got)
		}
	})
	t.Run("ACopyBesideItsOriginal", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		id := i.one()
		c := i.copied()
		c.refused("one is a copy of the other", "--new-id")
		c.serves(Adopt{Copy: true})
		own := c.one()
		if own == id {
			t.Error("the copy has the original's id")
		}
		_, stop, err := i.start(Adopt{})
		i.must(err)
		c.serves(Adopt{Copy: true}) // beside it, and the flag may stay
		stop()
		if i.one() != id || c.one() != own {
			t.Errorf("the ids were %s and %s, and are %s and %s", id, own, i.one(), c.one())
		}
		// A copy that another got its own id from is recognised all the same.
		d := c.copied()
		d.refused("one is a copy of the other", "--new-id")
	})
	t.Run("ACopyWhoseNewIdIsNotInAllPieces", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		c := i.copied()
		p, err := lookAt(t.Context(), c.cfg.Data, c.cfg.host())
		i.must(err)
		half, err := p.identity(Adopt{Copy: true})
		i.must(err)
		i.must(half.write(c.cfg.Data))
		c.serves(Adopt{Copy: true})
		if got := c.one(); got != half.ID {
			t.Errorf("the id was to be %s, and is %s", half.ID, got)
		}
	})
	t.Run("TwoThatPassForTheOriginal", func(t *testing.T) {
		i := newInstallation(t)
		i.serves(Adopt{})
		c := i.copied()
		aside := filepath.Join(t.TempDir(), "aside")
		i.must(os.Rename(i.cfg.Data, aside))
		path := i.cfg.Data
		i.cfg.Data = aside
		_, stop, err := i.start(Adopt{})
		i.must(err)
		i.must(os.Rename(c.cfg.Data, path))
		c.cfg.Data = path
		c.refused("has a server already", "--new-id")
		stop()
	})
}
