// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// manyBytes is room enough for every archive of these tests.
const manyBytes = 1 << 30

func TestAnArchiveKeepsEverythingOnTheWayToAnotherStore(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "exportlayer", 0)
		grow(t, at(l.Fd(), "upper"))
		want := describe(t, at(l.Fd(), "upper"))
		growOverlay(t, at(l.Fd(), "upper"))
		if err := os.Chtimes(at(l.Fd(), "upper"), time.Unix(77, 5), time.Unix(77, 5)); err != nil {
			t.Fatal(err)
		}
		// A deleted name has no time of its own.
		timeless := func(tree map[string]string) map[string]string {
			for path, s := range tree {
				if strings.HasPrefix(s, "20000 ") {
					tree[path] = "20000"
				}
			}
			return tree
		}
		want = timeless(want)
		want["."] = describe(t, at(l.Fd(), "upper"))["."]
		want["."] = strings.Replace(want["."], ` trusted.overlay.impure="y"`, "", 1)
		mustSnapshot(t, s, "exportlayer", "exportsnapshot")
		var archive bytes.Buffer
		if err := s.Export(t.Context(), "exportsnapshot", &archive); err != nil {
			t.Fatal(err)
		}
		other := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
		if _, err := other.Import(t.Context(), "importsnapshot", bytes.NewReader(archive.Bytes()), manyBytes); err != nil {
			t.Fatal(err)
		}
		sameTree(t, want, timeless(describeSnapshot(t, other, "importsnapshot")))
		var st unix.Stat_t
		c := mustCreateFrom(t, other, "importlayer", "importsnapshot", 0)
		if err := unix.Stat(at(c.Fd(), "upper/sparse"), &st); err != nil || st.Blocks > 1024 {
			t.Errorf("the sparse file has %d blocks, %v; want few", st.Blocks, err)
		}
		// And back, the same archive but for the order of the disk.
		size, err := s.Import(t.Context(), "backsnapshot", bytes.NewReader(archive.Bytes()), manyBytes)
		if err != nil {
			t.Fatal(err)
		}
		if counted := s.Info().DiskLimit == nil; !counted && size != -1 || counted && (size < 3*mib || size > 8*mib) {
			t.Errorf("the imported snapshot holds %d bytes", size)
		}
		sameTree(t, want, timeless(describeSnapshot(t, s, "backsnapshot")))
	})
}

func TestAnArchiveHasTheFormOfAnImageLayer(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	l := mustCreate(t, s, "exportlayer", 0)
	grow(t, at(l.Fd(), "upper"))
	growOverlay(t, at(l.Fd(), "upper"))
	mustSnapshot(t, s, "exportlayer", "exportsnapshot")
	var archive bytes.Buffer
	if err := s.Export(t.Context(), "exportsnapshot", &archive); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	place := map[string]int{}
	r := tar.NewReader(&archive)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for key := range h.PAXRecords {
			if strings.Contains(key, "trusted.") || strings.Contains(key, "security.") {
				t.Errorf("%s has %s", h.Name, key)
			}
		}
		if got[h.Name] != "" {
			t.Errorf("%s comes twice", h.Name)
		}
		place[h.Name] = len(place)
		got[h.Name] = string(h.Typeflag)
	}
	for name, kind := range map[string]string{
		"./": "5", "dir/": "5", ".wh.deleted": "0", "dir/.wh.deleted": "0", "opaque/" + opaqueMarker: "0", "opaque/new": "0", "fifo": "6", "dangling": "2", "socket": "",
	} {
		if got[name] != kind {
			t.Errorf("%s is of type %q, want %q", name, got[name], kind)
		}
	}
	if place["opaque/"+opaqueMarker] > place["opaque/new"] {
		t.Error("a directory is marked as opaque after what is in it")
	}
}

// member makes one entry of an archive.
func member(kind byte, name string, change ...func(*tar.Header)) *tar.Header {
	h := &tar.Header{Typeflag: kind, Name: name, Mode: 0o644, Format: tar.FormatPAX}
	if kind == tar.TypeDir {
		h.Mode = 0o755
	}
	for _, f := range change {
		f(h)
	}
	return h
}

func to(target string) func(*tar.Header) { return func(h *tar.Header) { h.Linkname = target } }

// pack makes an archive; the content of a file is its name's.
func pack(tb testing.TB, entries ...*tar.Header) *bytes.Buffer {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return &b
}

func TestAHostileArchiveReachesNothingAndLeavesNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		outside := filepath.Join(t.TempDir(), "outside")
		if err := os.Mkdir(outside, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, outside+"/precious", []byte("kept"))
		before := describe(t, outside)
		up := strings.Repeat("../", 40)
		long := strings.Repeat("x/", maxArchivePath) + "x"
		for name, archive := range map[string]*bytes.Buffer{
			"a path upwards":                 pack(t, member(tar.TypeReg, up+outside+"/new")),
			"a path upwards from within":     pack(t, member(tar.TypeReg, "a/../../../../"+outside+"/new")),
			"a directory upwards":            pack(t, member(tar.TypeDir, "..")),
			"through a link":                 pack(t, member(tar.TypeSymlink, "a", to(outside)), member(tar.TypeReg, "a/new")),
			"through a link to the top":      pack(t, member(tar.TypeSymlink, "a", to("/")), member(tar.TypeReg, "a"+outside+"/new")),
			"through a link, deep":           pack(t, member(tar.TypeSymlink, "a/b", to(outside)), member(tar.TypeReg, "a/b/c/new")),
			"through a relative link":        pack(t, member(tar.TypeDir, "d"), member(tar.TypeSymlink, "a", to("d")), member(tar.TypeReg, "a/new")),
			"through /proc":                  pack(t, member(tar.TypeSymlink, "a", to("/proc/self/root"+outside)), member(tar.TypeReg, "a/new")),
			"a directory in place of a link": pack(t, member(tar.TypeSymlink, "a", to(outside)), member(tar.TypeDir, "a")),
			"a whiteout through a link":      pack(t, member(tar.TypeSymlink, "a", to(outside)), member(tar.TypeReg, "a/.wh.precious")),
			"an opaque marker through one":   pack(t, member(tar.TypeSymlink, "a", to(outside)), member(tar.TypeReg, "a/"+opaqueMarker)),
			"a hard link upwards":            pack(t, member(tar.TypeLink, "a", to(up+outside+"/precious"))),
			"a hard link by its full path":   pack(t, member(tar.TypeLink, "a", to(outside+"/precious"))),
			"a hard link through a link":     pack(t, member(tar.TypeSymlink, "a", to(outside)), member(tar.TypeLink, "b", to("a/precious"))),
			"a hard link to a directory":     pack(t, member(tar.TypeDir, "d"), member(tar.TypeLink, "a", to("d"))),
			"a hard link to the top":         pack(t, member(tar.TypeLink, "a", to("."))),
			"a hard link to a whiteout":      pack(t, member(tar.TypeReg, ".wh.a"), member(tar.TypeLink, "b", to("a"))),
			"a hard link to nothing":         pack(t, member(tar.TypeLink, "a", to("b"))),
			"a file under a file":            pack(t, member(tar.TypeReg, "a"), member(tar.TypeReg, "a/b")),
			"a file for a directory":         pack(t, member(tar.TypeReg, "a/b"), member(tar.TypeReg, "a")),
			"a file as the top":              pack(t, member(tar.TypeReg, "./.")),
			"a link at /proc":                pack(t, member(tar.TypeSymlink, "proc", to("tmp"))),
			"a link at /dev, under a dot":    pack(t, member(tar.TypeSymlink, "./dev", to("/tmp"))),
			"a file at /sys":                 pack(t, member(tar.TypeReg, "sys")),
			"a pipe at /proc":                pack(t, member(tar.TypeFifo, "/proc")),
			"a hard link at /sys":            pack(t, member(tar.TypeReg, "a"), member(tar.TypeLink, "sys", to("a"))),
			"a whiteout, and a link at /dev": pack(t, member(tar.TypeReg, ".wh.dev"), member(tar.TypeSymlink, "dev", to("tmp"))),
			"a device":                       pack(t, member(tar.TypeBlock, "sda", func(h *tar.Header) { h.Devmajor = 8 })),
			"a device like a whiteout":       pack(t, member(tar.TypeChar, "null")),
			"an unknown type":                pack(t, member('Z', "a")),
			"a whiteout of the parent":       pack(t, member(tar.TypeReg, ".wh...")),
			"a whiteout of nothing":          pack(t, member(tar.TypeReg, ".wh.")),
			"the whole image hidden":         pack(t, member(tar.TypeReg, opaqueMarker)),
			"a user out of the range":        pack(t, member(tar.TypeReg, "a", func(h *tar.Header) { h.Uid = 65536 })),
			"a group out of the range":       pack(t, member(tar.TypeDir, "a", func(h *tar.Header) { h.Gid = 1 << 31 })),
			"a negative user":                pack(t, member(tar.TypeReg, "a", func(h *tar.Header) { h.Uid = -1 })),
			"a name that is too long":        pack(t, member(tar.TypeReg, strings.Repeat("n", 256))),
			"a path that is too long":        pack(t, member(tar.TypeReg, long)),
			"a target that is too long":      pack(t, member(tar.TypeSymlink, "a", to(strings.Repeat("t", 5000)))),
			"an access list that is none":    pack(t, member(tar.TypeReg, "a", func(h *tar.Header) { h.PAXRecords = map[string]string{attrRecord + "system.posix_acl_access": "xx"} })),
			"an attribute in bad hex":        pack(t, member(tar.TypeReg, "a", func(h *tar.Header) { h.PAXRecords = map[string]string{attrRecordHex + "zz": "=x"} })),
			"an attribute name with a NUL":   pack(t, member(tar.TypeReg, "a", func(h *tar.Header) { h.PAXRecords = map[string]string{attrRecordHex + "757365722e00": "=x"} })),
			"half an archive":                bytes.NewBuffer(pack(t, member(tar.TypeReg, "a"), member(tar.TypeReg, "b")).Bytes()[:1025]),
			"an archive without its end":     bytes.NewBuffer(pack(t, member(tar.TypeReg, "a"), member(tar.TypeReg, "b")).Bytes()[:2048]),
			"no archive":                     bytes.NewBufferString(strings.Repeat("this is no archive ", 100)),
		} {
			_, err := s.Import(t.Context(), "hostileimport", archive, manyBytes)
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: Import = %v, want invalid", name, err)
			}
			if err == nil {
				if err := s.RemoveSnapshot("hostileimport"); err != nil {
					t.Fatal(err)
				}
			}
		}
		sameTree(t, before, describe(t, outside))
		if ids, err := s.Snapshots(); err != nil || len(ids) > 0 {
			t.Errorf("snapshots = %q, %v; want none", ids, err)
		}
		if left, err := s.staging.names(); err != nil || len(left) > 0 {
			t.Errorf("left in the staging area: %q, %v", left, err)
		}
	})
}

func TestImportHoldsItsBounds(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	var many []*tar.Header
	for i := range 100 {
		many = append(many, member(tar.TypeFifo, fmt.Sprint(i)))
	}
	attr := func(h *tar.Header) {
		h.PAXRecords = map[string]string{attrRecord + "user.a": strings.Repeat("v", 3000)}
	}
	for name, archive := range map[string]io.Reader{
		"contents":   pack(t, member(tar.TypeReg, "a", func(h *tar.Header) { h.Size = 1 })),
		"entries":    pack(t, many...),
		"attributes": pack(t, member(tar.TypeDir, "a", attr), member(tar.TypeDir, "b", attr)),
		"parents":    pack(t, member(tar.TypeFifo, strings.Repeat("d/", 50)+"d")),
	} {
		if name == "contents" {
			// Of a file of zeros, which the disk would hold as a hole.
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			if err := w.WriteHeader(member(tar.TypeReg, "a", func(h *tar.Header) { h.Size = 1 << 40 })); err != nil {
				t.Fatal(err)
			}
			archive = io.MultiReader(&b, zeros{})
		}
		if _, err := s.Import(t.Context(), "boundedimport", archive, 4096); !fault.Is(err, fault.TooLarge) {
			t.Errorf("too many %s: Import = %v, want too large", name, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestImportPassesItsReadersErrorsOn(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	cut := errors.New("the line was cut")
	archive := pack(t, member(tar.TypeReg, "a"), member(tar.TypeReg, "b")).Bytes()
	if _, err := s.Import(t.Context(), "cutimport", io.MultiReader(bytes.NewReader(archive[:1000]), broken{cut}), manyBytes); !errors.Is(err, cut) {
		t.Errorf("Import = %v, want %v", err, cut)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Import(ctx, "cutimport", io.MultiReader(bytes.NewReader(archive[:1000]), readFunc(func() { cancel() }), bytes.NewReader(archive[1000:])), manyBytes)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Import = %v, want canceled", err)
	}
	if ids, err := s.Snapshots(); err != nil || len(ids) > 0 {
		t.Errorf("snapshots = %q, %v; want none", ids, err)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

type readFunc func()

func (f readFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }

// Layers of images as others write them: without directories, with a whiteout beside
// what is new, with names that come twice.
func TestImportReadsLayersThatOthersWrote(t *testing.T) {
	needRoot(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Plain})
	when := time.Unix(1_000_000, 123)
	stamped := func(h *tar.Header) { h.ModTime = when }
	archive := pack(t,
		member(tar.TypeXGlobalHeader, "pax_global_header", func(h *tar.Header) {
			*h = tar.Header{Typeflag: h.Typeflag, PAXRecords: map[string]string{"comment": "x"}}
		}),
		member(tar.TypeDir, "dir", stamped),
		member(tar.TypeReg, "dir/file", func(h *tar.Header) { h.Mode = 0o4755; h.Uid, h.Gid = 65535, 65535 }),
		member(tar.TypeReg, "/absolute/without/parents"),
		member(tar.TypeReg, "./twice"), member(tar.TypeSymlink, "twice", to("/etc/passwd")), member(tar.TypeReg, "twice"),
		member(tar.TypeReg, ".wh.replaced"), member(tar.TypeDir, "replaced"), member(tar.TypeReg, "replaced/new"),
		member(tar.TypeDir, "hidden"), member(tar.TypeReg, ".wh.hidden"),
		member(tar.TypeReg, "dir/.wh.gone"), member(tar.TypeReg, "dir/.wh.gone"),
		member(tar.TypeReg, ".wh..wh.plnk"),
		member(tar.TypeLink, "hard", to("./dir/file")), member(tar.TypeLink, "hard", to("dir/file")),
		member(tar.TypeReg, "capable", func(h *tar.Header) {
			h.PAXRecords = map[string]string{
				attrRecord + "security.capability":    "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
				attrRecord + "trusted.overlay.opaque": "y", attrRecord + "user.kept": "v",
			}
		}),
	)
	if _, err := s.Import(t.Context(), "foreignimport", archive, manyBytes); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for path, s := range describeSnapshot(t, s, "foreignimport") {
		kind, rest, _ := strings.Cut(s, " ")
		if i := strings.Index(rest, " same as"); i >= 0 {
			kind += rest[i:]
		}
		if i := strings.Index(rest, "="); i >= 0 {
			kind += rest[strings.LastIndex(rest[:i], " "):]
		}
		if path == "dir" && !strings.Contains(rest, "mtime 1000000.000000123") {
			t.Errorf("dir has %s", rest)
		}
		got[path] = kind
	}
	want := map[string]string{
		".": "40755", "dir": "40755", "dir/file": "104755 same as dir/file", "hard": "104755 same as dir/file", "dir/gone": "20000",
		"absolute": "40755", "absolute/without": "40755", "absolute/without/parents": "100644", "twice": "100644",
		"replaced": `40755 trusted.overlay.opaque="y"`, "replaced/new": "100644", "hidden": `40755 trusted.overlay.opaque="y"`,
		"capable": `100644 user.kept="v"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestADeepArchiveNeedsFewDescriptors(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	l := mustCreate(t, s, "deeplayer", 0)
	upper, err := openDir(l.Fd(), "upper")
	if err != nil {
		t.Fatal(err)
	}
	const depth = 2_000
	dig(t, upper, depth)
	unix.Close(upper)
	mustSnapshot(t, s, "deeplayer", "deepsnapshot")
	lowDescriptors(t, 4*maxChain, func() {
		r, w := io.Pipe()
		go func() { w.CloseWithError(s.Export(context.Background(), "deepsnapshot", w)) }()
		if _, err := s.Import(t.Context(), "deepimport", r, manyBytes); err != nil {
			t.Fatal(err)
		}
		top, err := s.openSnapshot("deepimport")
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(top)
		want := counter{files: depth, dirs: depth, deepest: depth}
		if diff := cmp.Diff(want, count(t, top, "upper"), cmp.AllowUnexported(counter{})); diff != "" {
			t.Errorf("import (-want +got):\n%s", diff)
		}
	})
}

// What is deeper than a path can be long is refused, and does no harm.
func TestAPathThatNoArchiveHoldsIsUnsupported(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	l := mustCreate(t, s, "deeplayer", 0)
	fd, err := openDir(l.Fd(), "upper")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("n", 255)
	for range maxArchivePath/256 + 2 {
		if err := unix.Mkdirat(fd, name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := openDir(fd, name)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	mustSnapshot(t, s, "deeplayer", "deepsnapshot")
	if err := s.Export(t.Context(), "deepsnapshot", io.Discard); !fault.Is(err, fault.Unsupported) {
		t.Errorf("Export = %v, want unsupported", err)
	}
}
