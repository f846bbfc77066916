// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/backup"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// hostileRecords are the records of one sandbox, as a file.
func hostileRecords(t *testing.T, id sandbox.ID) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "records.db")
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path, Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	err = db.Update(t.Context(), func(tx store.Tx) error {
		return tx.Sandboxes().Insert(&sandbox.Sandbox{
			ID: id, Project: "default", Image: "python", ImageDigest: "sha256:x", Runtime: "native", Limits: sandbox.DefaultLimits(),
			State: sandbox.Stopped, CreatedAt: now, UpdatedAt: now,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type entry struct {
	h    tar.Header
	data string
}

func tarOf(entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.h.Size = int64(len(e.data))
		if e.h.Mode == 0 {
			e.h.Mode = 0o600
		}
		_ = w.WriteHeader(&e.h)
		_, _ = io.WriteString(w, e.data)
	}
	_ = w.Close()
	return b.Bytes()
}

func regular(name, data string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name}, data}
}

func link(kind byte, name, to string) entry {
	return entry{tar.Header{Typeflag: kind, Name: name, Linkname: to}, ""}
}

// file is everything in a directory, by path.
func everything(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := path
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(b)
		}
		all = append(all, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A backup that somebody made by hand, with sums that fit, writes nothing outside of the
// directory, and leaves none that it does not restore.
func TestABackupIsHostile(t *testing.T) {
	skiptest.WithoutRoot(t, "disks belong to several users")
	const run = "01234567-89ab-cdef-0123-456789abcdef"
	id := sandbox.NewID()
	records := hostileRecords(t, id)
	disk := tarOf(regular("file", "content"))
	part := partSandbox + string(id)
	type parts map[string][]byte
	with := func(more parts) parts {
		all := parts{partRecords: records, part: disk}
		for name, b := range more {
			all[name] = b
		}
		return all
	}
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "victim"), []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := everything(t, out)
	restore := func(t *testing.T, file []byte) (string, error) {
		t.Helper()
		path, dir := filepath.Join(t.TempDir(), "file.tar"), filepath.Join(out, "data")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		cfg := DefaultConfig()
		cfg.Data, cfg.Native.Layers = dir, "plain"
		_, err = Restore(t.Context(), cfg, f, func(string, int64) {})
		return dir, err
	}
	pack := func(all parts) []byte {
		var b bytes.Buffer
		w, err := backup.NewWriter(&b, backup.Head{Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range all {
			if err := w.Part(name, writeBytes(data), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(nil); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	whole := pack(with(nil))
	for name, file := range map[string][]byte{
		"a disk that leads up":            pack(with(parts{part: tarOf(regular("../../../../../victim", "x"))})),
		"a disk with a link and a write":  pack(with(parts{part: tarOf(link(tar.TypeSymlink, "l", out), regular("l/victim", "x"))})),
		"a disk that links to a victim":   pack(with(parts{part: tarOf(link(tar.TypeLink, "l", filepath.Join(out, "victim")), regular("l", "x"))})),
		"a disk that is no archive":       pack(with(parts{part: []byte("nothing")})),
		"a sandbox without a disk":        pack(parts{partRecords: records}),
		"no records":                      pack(parts{part: disk}),
		"records that are none":           pack(parts{partRecords: bytes.Repeat([]byte("nothing "), 512), part: disk}),
		"records of an id that leads up":  pack(parts{partRecords: hostileRecords(t, "../../../../victim"), part: disk}),
		"an artifact that leads up":       pack(with(parts{partArtifacts: tarOf(regular(run+"/../../../victim", "x"))})),
		"an artifact of no run":           pack(with(parts{partArtifacts: tarOf(regular("../victim", "x"))})),
		"an artifact of an absolute path": pack(with(parts{partArtifacts: tarOf(regular(filepath.Join(out, "victim"), "x"))})),
		"an artifact that is a link":      pack(with(parts{partArtifacts: tarOf(link(tar.TypeSymlink, run+"/l", out), regular(run+"/l/victim", "x"))})),
		"an artifact that comes twice":    pack(with(parts{partArtifacts: tarOf(regular(run+"/f", "x"), regular(run+"/f", "y"))})),
		"a key file without an end":       pack(with(parts{partKey + SecretsKeyFile: make([]byte, maxKeyFile+1)})),
		"the half of it":                  whole[:len(whole)/2/512*512],
		"a link around it":                tarOf(link(tar.TypeSymlink, "backup.json", out)),
		"a part of a name that leads up":  tarOf(regular("backup.json", `{"format":1,"version":"","time":"2026-01-01T00:00:00Z"}`), regular("../victim.00000000", "x")),
		"a later format":                  tarOf(regular("backup.json", `{"format":2,"version":"","time":"2026-01-01T00:00:00Z"}`)),
		"more after its end":              append(bytes.Clone(whole[:len(whole)-1024]), tarOf(regular("victim", "x"))...),
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			dir, err := restore(t, file)
			switch fault.As(err).Code {
			case fault.Invalid, fault.Unavailable: // the second: of invalid records
			default:
				t.Errorf("got %v; want it refused", err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("the directory is there (%v)", err)
			}
			if after := everything(t, out); !slices.Equal(after, before) {
				t.Errorf("outside there is\n%s\nwant\n%s", after, before)
			}
		})
	}
	t.Run("one_that_is_whole", func(t *testing.T) {
		file := pack(with(parts{partArtifacts: tarOf(regular(run+"/sub/f", "x")), partKey + "other": []byte("ignored")}))
		dir, err := restore(t, file)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if want := []string{"artifacts", "id.json", "lock", "native", "sandpit.db"}; !slices.Equal(names, want) {
			t.Errorf("the directory has %q, want %q", names, want)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "native", "layers", "layers", string(id), "upper", "file")); err != nil || string(b) != "content" {
			t.Errorf("the disk has %q, %v", b, err)
		}
		// Into what is in use nothing is restored, and nothing of it is removed.
		used := everything(t, dir)
		if _, err := restore(t, file); !fault.Is(err, fault.State) {
			t.Errorf("into a directory in use: %v", err)
		}
		if after := everything(t, dir); !slices.Equal(after, used) {
			t.Errorf("the directory in use has\n%s\nwant\n%s", after, used)
		}
	})
}

// A restore that is given up is undone.
func TestARestoreIsGivenUp(t *testing.T) {
	skiptest.WithoutRoot(t, "disks belong to several users")
	id := sandbox.NewID()
	var b bytes.Buffer
	w, err := backup.NewWriter(&b, backup.Head{})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{partRecords: hostileRecords(t, id), partSandbox + string(id): tarOf(regular("file", strings.Repeat("x", 8<<20)))} {
		if err := w.Part(name, writeBytes(data), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file.tar")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	cfg := DefaultConfig()
	cfg.Data, cfg.Native.Layers = t.TempDir(), "plain"
	ctx, cancel := context.WithCancel(t.Context())
	marked := false
	_, err = Restore(ctx, cfg, f, func(what string, done int64) {
		if what == "restore" && done > 4<<20 {
			_, err := os.Stat(filepath.Join(cfg.Data, restoringFile))
			marked = err == nil
			cancel()
		}
	})
	if err == nil || !marked {
		t.Fatalf("got %v; want it given up, and marked until then (%v)", err, marked)
	}
	if left := everything(t, cfg.Data); len(left) != 1 {
		t.Errorf("there is left %q", left)
	}
}
