// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/disk"
)

// holes is a file with holes, as an agent sends it.
func holes(name string, size int, parts map[int]string, order ...int) file {
	var b bytes.Buffer
	for _, at := range order {
		_ = binary.Write(&b, binary.BigEndian, []uint64{uint64(at), uint64(len(parts[at]))})
		b.WriteString(parts[at])
	}
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, PAXRecords: map[string]string{"SANDPIT.sparse": strconv.Itoa(size)}}, b.String()}
}

func tree(t *testing.T, files ...file) *disk.Tree {
	t.Helper()
	tree, err := disk.Read(t.Context(), bytes.NewReader(pack(t, files...)))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestHolesAreZeros(t *testing.T) {
	content := strings.Repeat("\x00", 9000) + "in the middle" + strings.Repeat("\x00", 20000)
	sparse := holes("f", len(content), map[int]string{8192: content[8192:12288]}, 8192)
	for what, same := range map[string]file{
		"without holes":                 regular("f", content),
		"with other ones":               holes("f", len(content), map[int]string{0: content[:9100]}, 0),
		"with parts that are no blocks": holes("f", len(content), map[int]string{9000: "in the", 9006: " middle"}, 9000, 9006),
	} {
		if c := disk.Changes(tree(t, sparse), tree(t, same), 10); c.Total != 0 {
			t.Errorf("the same file %s: %+v", what, c)
		}
	}
	for what, other := range map[string]file{
		"elsewhere": holes("f", len(content), map[int]string{16384: content[8192:12288]}, 16384),
		"longer":    holes("f", len(content)+1, map[int]string{8192: content[8192:12288]}, 8192),
		"empty":     holes("f", len(content), nil),
	} {
		if c := disk.Changes(tree(t, sparse), tree(t, other), 10); c.Total != 1 {
			t.Errorf("another file, %s: %+v", what, c)
		}
	}
	var layer bytes.Buffer
	if err := disk.Between(tree(t), tree(t, sparse)).Write(t.Context(), bytes.NewReader(pack(t, sparse)), &layer); err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(&layer)
	h, err := r.Next()
	if err != nil || h.PAXRecords["SANDPIT.sparse"] != "" {
		t.Fatalf("%+v, %v", h, err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != content {
		t.Errorf("a layer has %d bytes of it, %v", len(b), err)
	}
	for what, wrong := range map[string]file{
		"a size that is none":   {tar.Header{Typeflag: tar.TypeReg, Name: "f", PAXRecords: map[string]string{"SANDPIT.sparse": "-4"}}, ""},
		"half a part":           {tar.Header{Typeflag: tar.TypeReg, Name: "f", PAXRecords: map[string]string{"SANDPIT.sparse": "40"}}, "short"},
		"parts that overlap":    holes("f", 100, map[int]string{0: "0123456789", 5: "x"}, 0, 5),
		"a part behind its end": holes("f", 3, map[int]string{2: "two"}, 2),
	} {
		if _, err := disk.Read(t.Context(), bytes.NewReader(pack(t, wrong))); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// A disk of some directories takes of a layer what is in them.
func TestALayerOfMoreThanTheDisk(t *testing.T) {
	literal := regular("workspace/.wh.name", "x")
	literal.PAXRecords = map[string]string{"SANDPIT.literal": "1"}
	bare := regular("workspace/bare", "x")
	bare.PAXRecords = map[string]string{"SANDPIT.xattr.757365722e6e6f6e65": "=", "SANDPIT.xattr.74727573746564": "=x", "SCHILY.xattr.user.note": "n", "SANDPIT.sparse": "5"}
	var out bytes.Buffer
	_, left, err := disk.TakeBelow(t.Context(), bytes.NewReader(pack(t, directory("etc"), regular("etc/passwd", "x"), regular("workspace/.wh.gone", ""), regular("workspaces", "x"),
		literal, bare, regular("workspace/sub/f", "12345"))), &out, 1<<20, []string{"workspace"})
	if err != nil || left != 3 {
		t.Errorf("%d left out, %v", left, err)
	}
	var names []string
	r := tar.NewReader(&out)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Name == "workspace/bare" && (len(h.PAXRecords) != 2 || h.PAXRecords["SANDPIT.xattr.757365722e6e6f6e65"] != "=") {
			t.Errorf("its records are %v", h.PAXRecords)
		}
	}
	if got := strings.Join(names, " "); got != "workspace/.wh.name workspace/bare workspace/sub/f" {
		t.Errorf("it has %q", got)
	}
	if _, _, err := disk.TakeBelow(t.Context(), bytes.NewReader(pack(t, regular("etc/passwd", "x"), hard("workspace/l", "etc/passwd"))), io.Discard, 1<<20, []string{"workspace"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a link to what is not on the disk: %v", err)
	}
}
