// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sparse_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/sparse"
)

// entry returns the header of an entry with the content of a file of that size.
func entry(size string, content int) *tar.Header {
	return &tar.Header{Size: int64(content), PAXRecords: map[string]string{sparse.Record: size}}
}

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	const size = 3<<20 + 5
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := strings.Repeat("data", 1<<14)
	for _, at := range []int64{1 << 20, size - int64(len(data))} {
		if _, err := f.WriteAt([]byte(data), at); err != nil {
			t.Fatal(err)
		}
	}
	fd := int(f.Fd())
	n, err := sparse.Length(t.Context(), fd, size)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("the file system does not tell where holes are: %v", err)
	}
	if err != nil || n >= 1<<20 {
		t.Fatalf("the entry has %d bytes, %v", n, err)
	}
	var content bytes.Buffer
	err = sparse.Write(t.Context(), &content, fd, size, func(at, length int64) error {
		_, err := io.Copy(&content, io.NewSectionReader(f, at, length))
		return err
	})
	if err != nil || int64(content.Len()) != n {
		t.Fatalf("the entry has %d bytes, and not %d: %v", content.Len(), n, err)
	}
	p, err := sparse.Parse(entry(strconv.Itoa(size), content.Len()), &content)
	if err != nil || p.Size != size {
		t.Fatalf("%+v, %v", p, err)
	}
	got := make([]byte, size)
	for {
		at, length, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(&content, got[at:at+length]); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it is not the same file, %v", err)
	}
}

func TestAnEntryIsHostile(t *testing.T) {
	part := func(at, length uint64, data string) string {
		return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, at), length)) + data
	}
	for name, c := range map[string]struct{ size, content string }{
		"a part beyond the end":   {"10", part(8, 4, "over")},
		"parts that overlap":      {"100", part(10, 4, "over") + part(12, 4, "over")},
		"parts that go back":      {"100", part(50, 1, "x") + part(10, 1, "y")},
		"a part that is cut off":  {"100", part(10, 50, "short")},
		"a part beyond any file":  {"9223372036854775807", part(1<<63, 4, "over")},
		"a length beyond any":     {"9223372036854775807", part(4, 1<<63, "over")},
		"an end that wraps":       {"9223372036854775807", part(1<<63-1, 1<<63-1, "over")},
		"a size below 0":          {"-1", ""},
		"a size that is no digit": {"x", ""},
	} {
		err := all(entry(c.size, len(c.content)), c.content)
		if _, ok := errors.AsType[sparse.FormatError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := all(entry("10", 5), "short"); err != io.ErrUnexpectedEOF {
		t.Errorf("a head that is cut off: %v", err)
	}
	if err := all(entry("10", 17), ""); err != io.ErrUnexpectedEOF {
		t.Errorf("content that ends before its parts: %v", err)
	}
	if p, err := sparse.Parse(&tar.Header{Size: 4}, nil); p != nil || err != nil {
		t.Errorf("an entry without the record: %+v, %v", p, err)
	}
}

// all reads all parts of an entry.
func all(h *tar.Header, content string) error {
	r := strings.NewReader(content)
	p, err := sparse.Parse(h, r)
	if err != nil {
		return err
	}
	for {
		_, n, err := p.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, r, n); err != nil {
			return err
		}
	}
}
