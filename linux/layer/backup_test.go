// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/sparse"
)

// sameAgain is a tree without what an archive cannot have.
func sameAgain(tree map[string]string) map[string]string {
	for path, s := range tree {
		if strings.HasPrefix(s, "20000 ") { // a deleted name has no time of its own
			tree[path] = "20000"
		}
	}
	return tree
}

func TestDisksOfABackupAreRestored(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "exportlayer", 0)
		if err := s.CreateVolume("exportvolume", 0); err != nil {
			t.Fatal(err)
		}
		v, err := s.OpenVolume("exportvolume")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = v.Close() }()
		const far = 1 << 40
		trees := []string{at(l.Fd(), "upper"), at(int(v.Fd()), ".")}
		wants := make([]map[string]string, len(trees))
		for n, tree := range trees {
			grow(t, tree)
			wants[n] = sameAgain(describe(t, tree))
			// Too large to be read, and few bytes.
			f, err := os.Create(tree + "/holes")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int64{1 << 20, far - 3} {
				if _, err := f.WriteAt([]byte("end"), at); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		mustSnapshot(t, s, "exportlayer", "layersnapshot")
		if err := s.SnapshotVolume(t.Context(), "exportvolume", "volumesnapshot"); err != nil {
			t.Fatal(err)
		}
		if err := s.SnapshotVolume(t.Context(), "exportvolume", "volumesnapshot"); !fault.Is(err, fault.Exists) {
			t.Errorf("a snapshot that exists: %v", err)
		}
		if err := s.SnapshotVolume(t.Context(), "othervolume", "othersnapshot"); !fault.Is(err, fault.NotFound) {
			t.Errorf("of a volume that is not there: %v", err)
		}
		// What is written afterwards is not in it.
		writeFile(t, trees[1]+"/later", nil)
		var archives [2]bytes.Buffer
		for n, id := range []string{"layersnapshot", "volumesnapshot"} {
			if err := s.ExportDisk(t.Context(), id, &archives[n]); err != nil {
				t.Fatal(err)
			}
			if archives[n].Len() > 8<<20 {
				t.Errorf("%s has %d bytes: the holes are in it", id, archives[n].Len())
			}
			if err := s.RemoveSnapshot(id); err != nil {
				t.Fatal(err)
			}
		}
		kind := opts.Kind
		if kind == Btrfs {
			kind = Loop
		}
		other := mustOpen(t, Options{Dir: t.TempDir(), Kind: kind})
		ctx := t.Context()
		read := func(n int) *bytes.Reader { return bytes.NewReader(archives[n].Bytes()) }
		if err := other.ImportLayer(ctx, "importlayer", read(0), manyBytes, 64<<20); err != nil {
			t.Fatal(err)
		}
		if err := other.ImportLayer(ctx, "importlayer", read(0), manyBytes, 0); !fault.Is(err, fault.Exists) {
			t.Errorf("over a layer that exists: %v", err)
		}
		if _, err := other.ImportSnapshot(ctx, "importsnapshot", read(0), manyBytes); err != nil {
			t.Fatal(err)
		}
		if err := other.ImportVolume(ctx, "importvolume", read(1), manyBytes, 64<<20); err != nil {
			t.Fatal(err)
		}
		restored, err := other.Open("importlayer")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = restored.Close() }()
		vol, err := other.OpenVolume("importvolume")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = vol.Close() }()
		snap := mustCreateFrom(t, other, "fromsnapshot", "importsnapshot", 0)
		for n, tree := range []string{at(restored.Fd(), "upper"), at(int(vol.Fd()), "."), at(snap.Fd(), "upper")} {
			var st unix.Stat_t
			b := make([]byte, 3)
			f, err := os.Open(tree + "/holes")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int64{1 << 20, far - 3} {
				if _, err := f.ReadAt(b, at); err != nil || string(b) != "end" {
					t.Errorf("the file with holes has %q, %v", b, err)
				}
			}
			if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Size != far || st.Blocks > 1024 {
				t.Errorf("the file with holes is %+v, %v", st, err)
			}
			_ = f.Close()
			if err := os.Remove(tree + "/holes"); err != nil {
				t.Fatal(err)
			}
			got, want := sameAgain(describe(t, tree)), wants[n%2]
			delete(got, ".") // its time is of the removal
			delete(want, ".")
			sameTree(t, want, got)
		}
		if other.Info().DiskLimit == nil {
			if _, limit, err := other.VolumeUsage("importvolume"); err != nil || limit != 64<<20 {
				t.Errorf("the volume has the limit %d, %v", limit, err)
			}
			if _, limit, err := other.Usage("importlayer"); err != nil || limit != 64<<20 {
				t.Errorf("the layer has the limit %d, %v", limit, err)
			}
		}
		logs, err := other.Logs("importlayer")
		if err != nil {
			t.Fatal(err)
		}
		_ = logs.Close()
	})
}

func TestAnArchiveOfABackupIsHostile(t *testing.T) {
	needRoot(t)
	part := func(at, length uint64, data string) string {
		return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, at), length)) + data
	}
	holes := func(size, data string) func(*tar.Writer) {
		return func(w *tar.Writer) {
			_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Mode: 0o600, Size: int64(len(data)), PAXRecords: map[string]string{sparse.Record: size}, Format: tar.FormatPAX})
			_, _ = w.Write([]byte(data))
		}
	}
	plain := func(h tar.Header) func(*tar.Writer) {
		return func(w *tar.Writer) { _ = w.WriteHeader(&h) }
	}
	for name, fill := range map[string]func(*tar.Writer){
		"parts beyond the end":    holes("10", part(8, 4, "over")),
		"parts that overlap":      holes("100", part(10, 4, "over")+part(12, 4, "over")),
		"parts that go back":      holes("100", part(50, 1, "x")+part(10, 1, "y")),
		"a part that is cut off":  holes("100", part(10, 50, "short")),
		"a part beyond any file":  holes("9223372036854775807", part(1<<63, 4, "over")),
		"a length beyond any":     holes("9223372036854775807", part(4, 1<<63, "over")),
		"an end that wraps":       holes("9223372036854775807", part(1<<63-1, 1<<63-1, "over")),
		"a size that is none":     holes("-1", ""),
		"a size that is no digit": holes("x", ""),
		"a head that is cut off":  holes("10", "short"),
		"a way up":                plain(tar.Header{Typeflag: tar.TypeReg, Name: "../up"}),
		"a device":                plain(tar.Header{Typeflag: tar.TypeChar, Name: "dev", Devmajor: 1, Devminor: 3}),
		"a link out":              plain(tar.Header{Typeflag: tar.TypeLink, Name: "l", Linkname: "../../up"}),
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			fill(w)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
			if err := s.ImportLayer(t.Context(), "hostilelayer", bytes.NewReader(b.Bytes()), manyBytes, 0); !fault.Is(err, fault.Invalid) {
				t.Errorf("the layer: %v", err)
			}
			if err := s.ImportVolume(t.Context(), "hostilevolume", bytes.NewReader(b.Bytes()), manyBytes, 0); !fault.Is(err, fault.Invalid) {
				t.Errorf("the volume: %v", err)
			}
			layers, _ := s.List()
			volumes, _ := s.Volumes()
			if len(layers)+len(volumes) > 0 {
				t.Errorf("there are %q and %q", layers, volumes)
			}
		})
	}
}
