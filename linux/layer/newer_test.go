// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// keepQuotas writes into a store that is not mounted that it keeps simple quotas.
func keepQuotas(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	super := make([]byte, superSize)
	if _, err := f.ReadAt(super, superAt); err != nil {
		t.Fatal(err)
	}
	flags := binary.LittleEndian.Uint64(super[superIncompat:])
	binary.LittleEndian.PutUint64(super[superIncompat:], flags|incompatSquota)
	// The first 32 bytes are for the checksum of the others, four of them for this kind.
	binary.LittleEndian.PutUint32(super, crc32.Checksum(super[32:], crc32.MakeTable(crc32.Castagnoli)))
	if _, err := f.WriteAt(super, superAt); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// sum is of what is in the file, zeros left out: what was only read may count as a hole before and as
// data after.
func sum(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, zeros, block := sha256.New(), make([]byte, 4096), make([]byte, 4096)
	for at := int64(0); ; {
		if at, err = f.Seek(at, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) { // nothing but a hole is left
			return [sha256.Size]byte(h.Sum(nil))
		}
		if err != nil {
			t.Fatal(err)
		}
		at -= at % int64(len(block))
		n, err := f.ReadAt(block, at)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			fmt.Fprintln(h, at)
			h.Write(block[:n])
		}
		at += int64(len(block))
	}
}

// A kernel that knows simple quotas opens such a store, and one that does not is told
// to be the reason, by Open and by Inspect, without a byte of the store being another.
func TestAStoreOfANewerKernelIsRefusedAndNotHarmed(t *testing.T) {
	needLoop(t)
	nothingLeft(t)
	dir := t.TempDir()
	s := mustOpen(t, Options{Dir: dir, Kind: Loop})
	mustCreate(t, s, "precious", 0).Close()
	_, err := os.Stat(filepath.Join(featuresDir, "simple_quota"))
	knows := err == nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, loopFile)
	// The kernel writes to the file until the device is gone.
	until(t, "the store's device is let go", func() bool { return len(loopsOf(t, dir)) == 0 })
	keepQuotas(t, path)
	if knows {
		if s := mustOpen(t, Options{Dir: dir}); s.Info().Kind != Loop {
			t.Errorf("it is opened as %s", s.Info().Kind)
		}
		return
	}
	before := sum(t, path)
	for _, kind := range []Kind{"", Loop} {
		_, err := Open(t.Context(), withAttach(Options{Dir: dir, Kind: kind}))
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.As(err).Remedy, "Linux 6.7") {
			t.Errorf("Open(%q) = %v, want unsupported, and the kernel that would do", kind, err)
		}
	}
	findings, err := Inspect(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, f := range findings {
		told = told || fault.Is(f.Err, fault.Unsupported)
		if strings.Contains(f.What, "damaged") {
			t.Errorf("it is called damaged: %+v", f)
		}
	}
	if !told {
		t.Errorf("Inspect = %+v, want the reason", findings)
	}
	if sum(t, path) != before {
		t.Error("the store was written to")
	}
}

func TestWhyAStoreIsRefused(t *testing.T) {
	super := func(magic string, flags uint64) io.ReaderAt {
		b := make([]byte, superAt+superSize)
		copy(b[superAt+superMagicAt:], magic)
		binary.LittleEndian.PutUint64(b[superAt+superIncompat:], flags)
		return bytes.NewReader(b)
	}
	old, recent := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(recent, "simple_quota"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		file     io.ReaderAt
		features string
		want     bool
	}{
		{"AnOldKernel", super(superMagic, 0x361|incompatSquota), old, true},
		{"ANewKernel", super(superMagic, 0x361|incompatSquota), recent, false},
		{"NoQuotas", super(superMagic, 0x361), old, false},
		{"NoBtrfs", super("something", ^uint64(0)), old, false},
		{"AStub", strings.NewReader("short"), old, false},
	} {
		if err := refusedAs(c.file, "/store", c.features); (err != nil) != c.want || err != nil && !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: got %v, want an error: %v", c.name, err, c.want)
		}
	}
}
