// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
)

// plenty is how much an Unpack of these tests writes at most, in bytes.
const plenty = 1 << 20

// archive makes an archive of entries, each with the content "evil" if it is a file without a size.
func archive(t *testing.T, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			content = "evil"
			h.Size = int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close() // what has a size and no content is cut there
	return &b
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }

func dir(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}
}

func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

func hard(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
}

// unpack unpacks an archive, and returns what was left out.
func unpack(t *testing.T, r io.Reader, to string, most int64) (left []string, err error) {
	t.Helper()
	c := &Copy{Most: most, Left: func(name, why string) { left = append(left, name+": "+why) }}
	return left, c.Unpack(t.Context(), r, to)
}

// tree lists what is below a directory, with the content of files and the targets of links.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		got[rel] = info.Mode().String()
		switch d.Type() {
		case 0:
			b, err := os.ReadFile(p)
			got[rel] += " " + string(b)
			return err
		case fs.ModeSymlink:
			target, err := os.Readlink(p)
			got[rel] = "-> " + target
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func differ(t *testing.T, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is here is not what should be (-want +got):\n%s", diff)
	}
}

func TestUnpackConfinesHostileArchives(t *testing.T) {
	const f, d = "-rw-r--r-- evil", "drwxr-xr-x"
	device := tar.Header{Typeflag: tar.TypeBlock, Name: "d/dev", Devmajor: 8}
	suid := tar.Header{Typeflag: tar.TypeReg, Name: "d/suid", Mode: 0o6755}
	odd := tar.Header{Typeflag: 'Z', Name: "d/odd"}
	for _, c := range []struct {
		name    string
		entries []tar.Header
		want    map[string]string // beside precious, outside, and out
		left    int
	}{
		{"NamesThatLeadOut", []tar.Header{
			dir("d"), file("d/../up"), file("../up"), file("/etc/evil"), file("d//x"), file("d/a/../../../up"), file("d/./x"), file("d/.."), dir("../d"), file("d/fine"),
		}, map[string]string{"fine": f}, 8},
		{"LinkThenFileThroughIt", []tar.Header{
			dir("d"), link("d/l", "../outside"), file("d/l/x"), link("d/abs", "/tmp"), file("d/abs/x"), link("d/in", "s"), file("d/in/x"), dir("d/s"), link("d/s/up", "../.."), file("d/s/y"),
		}, map[string]string{"s": d, "in": "-> s", "s/y": f}, 6},
		{"HardLinks", []tar.Header{
			dir("d"), hard("d/a", "../precious"), hard("d/b", "/etc/passwd"), hard("d/c", "d/../../precious"), link("d/l", "f"), hard("d/e", "d/l"), hard("d/g", "d/none"),
			file("d/f"), hard("d/h", "d/f"), hard("d/h", "d/f"),
		}, map[string]string{"l": "-> f", "f": f, "h": f}, 5},
		{"Specials", []tar.Header{dir("d"), device, odd, {Typeflag: tar.TypeFifo, Name: "d/fifo"}, {Typeflag: tar.TypeChar, Name: "d/null"}, suid},
			map[string]string{"suid": "-rwxr-xr-x evil"}, 4},
		{"SecondTops", []tar.Header{dir("d"), file("d"), file("other"), link("third", "x"), dir("d"), file("d/f")}, map[string]string{"f": f}, 3},
		{"NoDirectoryFirst", []tar.Header{dir("d"), file("d/none/f"), dir("d/x"), dir("d/y"), file("d/x/late"), file("d/y/f"), dir("d/x"), file("d/x/f")},
			map[string]string{"x": d, "y": d, "x/f": f}, 3},
		{"FileInPlaceOfADirectory", []tar.Header{dir("d"), dir("d/x"), file("d/x/f"), file("d/x"), link("d/x", "f"), file("d/g")},
			map[string]string{"x": d, "x/f": f, "g": f}, 2},
		{"LongNames", []tar.Header{dir("d"), file("d/" + strings.Repeat("n", 300)), file("d/" + strings.Repeat("n/", 3000) + "f"), file("d/f")}, map[string]string{"f": f}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := t.TempDir()
			must(t, os.WriteFile(filepath.Join(top, "precious"), []byte("precious"), 0o600))
			must(t, os.Mkdir(filepath.Join(top, "outside"), 0o755))
			left, err := unpack(t, archive(t, c.entries...), filepath.Join(top, "out"), plenty)
			must(t, err)
			defer func() { // the same where files cannot be without a name
				named := filepath.Join(t.TempDir(), "out")
				must(t, (&Copy{Most: plenty, Left: func(string, string) {}, named: true}).Unpack(t.Context(), archive(t, c.entries...), named))
				differ(t, tree(t, filepath.Join(top, "out")), tree(t, named))
			}()
			want := map[string]string{"precious": "-rw------- precious", "outside": d, "out": d}
			for name, is := range c.want {
				want["out/"+name] = is
			}
			differ(t, want, tree(t, top))
			if len(left) != c.left {
				t.Errorf("%d things are left out, want %d:\n%s", len(left), c.left, strings.Join(left, "\n"))
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnpackFollowsNoLinkThatIsHere(t *testing.T) {
	make := func(t *testing.T) string {
		top := t.TempDir()
		must(t, os.WriteFile(filepath.Join(top, "precious"), []byte("precious"), 0o600))
		for _, name := range []string{"outside", "out", "out/sub"} {
			must(t, os.Mkdir(filepath.Join(top, name), 0o755))
		}
		must(t, os.Symlink("../precious", filepath.Join(top, "out", "f")))
		must(t, os.Symlink("../outside", filepath.Join(top, "out", "l")))
		must(t, os.Symlink("sub", filepath.Join(top, "out", "in")))
		return top
	}
	top := make(t)
	left, err := unpack(t, archive(t, dir("d"), file("d/f"), file("d/l/x"), file("d/in/x")), filepath.Join(top, "out"), plenty)
	must(t, err)
	if len(left) != 2 {
		t.Errorf("left out: %q", left)
	}
	differ(t, map[string]string{
		"precious": "-rw------- precious", "outside": "drwxr-xr-x", "out": "drwxr-xr-x", "out/sub": "drwxr-xr-x", "out/f": "-rw-r--r-- evil",
		"out/l": "-> ../outside", "out/in": "-> sub",
	}, tree(t, top))
	_, err = unpack(t, archive(t, file("f")), filepath.Join(top, "out", "l"), plenty)
	must(t, err)
	if got := tree(t, top)["out/l"]; got != "-rw-r--r-- evil" {
		t.Errorf("a file in the place of a link is %q", got)
	}
	for _, name := range []string{"l", "in"} {
		top := make(t)
		if _, err := unpack(t, archive(t, dir("d"), dir("d/"+name), file("d/"+name+"/x")), filepath.Join(top, "out"), plenty); !fault.Is(err, fault.Exists) {
			t.Errorf("the link %s was taken for a directory: %v", name, err)
		}
	}
}

func TestLinksGoUpNoFurtherThanTheTop(t *testing.T) {
	for depth, links := range []map[string]bool{
		{"a": true, ".": true, "a//b": true, "..": false, "./..": false, "a/..": false, "a/../b": false, "/": false, "": false, "a\x00b": false, `a\b`: false},
		{"..": true, "../b": true, ".././b/.": true, "../..": false, "../b/..": false},
		{"../..": true, "../../c": true, "../../../c": false, "../a/../..": false},
	} {
		for target, want := range links {
			if got := staysBelow(depth, target); got != want {
				t.Errorf("%q %d below the top: %v", target, depth, got)
			}
		}
	}
}

func TestUnpackWritesNoMoreThanAllowed(t *testing.T) {
	huge := tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: 1 << 62, Format: tar.FormatPAX}
	inside := huge
	inside.Name = "d/huge"
	many := []tar.Header{dir("d")}
	junk := []tar.Header{dir("d")}
	for i := range 20 {
		many = append(many, file(fmt.Sprintf("d/f%02d", i)))
		junk = append(junk, file("d/../x"))
	}
	for _, c := range []struct {
		name    string
		entries []tar.Header
		most    int64
		says    string
		left    int // entries here afterwards
	}{
		{"AFileOfHoles", []tar.Header{huge}, plenty, "its 4294967296.0 GiB", 0},
		{"OneInADirectory", []tar.Header{dir("d"), file("d/a"), inside}, plenty, "its 4294967296.0 GiB", 2},
		{"ManyEntries", many, 6 * EntryCost, "one entry more", 5}, // their content counts, too
		{"ManyThatAreLeftOut", junk, 6 * EntryCost, "one entry more", 1},
		{"ADirectoryInIt", []tar.Header{dir("d"), dir("d/sub")}, 2*EntryCost - 1, "one entry more", 1},
		{"TheDirectoryItself", []tar.Header{dir("d")}, EntryCost - 1, "one entry more", 0},
		{"AFileThatJustFits", []tar.Header{file("f")}, EntryCost + 4, "", 1},
		{"OneByteLess", []tar.Header{file("f")}, EntryCost + 3, "its 4 B", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := t.TempDir()
			_, err := unpack(t, archive(t, c.entries...), filepath.Join(top, "out"), c.most)
			if c.says == "" && err != nil || c.says != "" && (!fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want too_large with %q", err, c.says)
			}
			if got := tree(t, top); len(got) != c.left {
				t.Errorf("here are %v, want %d entries", got, c.left)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestUnpackOfWhatIsNoWholeArchive(t *testing.T) {
	whole := archive(t, dir("d"), tar.Header{Typeflag: tar.TypeReg, Name: "d/cut", Size: 1000})
	for name, r := range map[string]io.Reader{
		"cut":      whole,
		"text":     strings.NewReader(strings.Repeat("text", 1000)),
		"empty":    strings.NewReader(""),
		"endless":  io.MultiReader(archive(t, dir("d")), endless{}),
		"no top":   archive(t, file("d/f")),
		"link top": archive(t, link("d", "precious")),
	} {
		top := t.TempDir()
		if _, err := unpack(t, r, filepath.Join(top, "out"), plenty); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		for got := range tree(t, top) {
			if got != "out" {
				t.Errorf("%s left %s behind", name, got)
			}
		}
	}
}

// A file that is there is replaced, by one that is large or small, and one that breaks off leaves it.
func TestUnpackReplacesAFileByAWholeOne(t *testing.T) {
	for _, named := range []bool{false, true} {
		for _, size := range []int{5, madeSmall + 1} {
			top := t.TempDir()
			must(t, os.WriteFile(filepath.Join(top, "f"), []byte("old"), 0o600))
			c := &Copy{Most: plenty, Left: func(name, why string) { t.Errorf("left out: %s: %s", name, why) }, named: named}
			content := strings.Repeat("n", size)
			if err := c.Unpack(t.Context(), cutArchive(t, content, size/2), top); !fault.Is(err, fault.Unavailable) {
				t.Errorf("an archive that breaks off: %v", err)
			}
			differ(t, map[string]string{"f": "-rw------- old"}, tree(t, top))
			must(t, c.Unpack(t.Context(), cutArchive(t, content, size), top))
			differ(t, map[string]string{"f": "-rw-r--r-- " + content}, tree(t, top))
		}
	}
}

// cutArchive returns an archive of a directory with one file, f, of which there are so many bytes.
func cutArchive(t *testing.T, content string, bytesOf int) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	d := dir("d")
	must(t, w.WriteHeader(&d))
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o644, Size: int64(len(content))}))
	if _, err := io.WriteString(w, content[:bytesOf]); err != nil {
		t.Fatal(err)
	}
	if bytesOf == len(content) {
		must(t, w.Close())
	}
	return &b
}

// More entries than are made at once come in their order: the second of a name replaces the first, and a link
// finds the file that it is another name of.
func TestUnpackMakesEntriesInTheirOrder(t *testing.T) {
	entries := []tar.Header{dir("d")}
	want := map[string]string{}
	for i := range 3 * madeAtOnce {
		name := fmt.Sprintf("f%04d", i)
		long := tar.Header{Typeflag: tar.TypeReg, Name: "d/" + name, Mode: 0o600}
		entries = append(entries, long, file("d/"+name), hard("d/l"+name, "d/"+name))
		want[name], want["l"+name] = "-rw-r--r-- evil", "-rw-r--r-- evil"
	}
	top := filepath.Join(t.TempDir(), "out")
	left, err := unpack(t, archive(t, entries...), top, 16<<20)
	if err != nil || len(left) > 0 {
		t.Fatal(err, left)
	}
	differ(t, want, tree(t, top))
}

func TestUnpackKeepsModesAndTimes(t *testing.T) {
	old := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	top := filepath.Join(t.TempDir(), "out")
	entries := []tar.Header{
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o510}, {Typeflag: tar.TypeDir, Name: "./sub/", Mode: 0o510}, {Typeflag: tar.TypeReg, Name: "./sub/aged", Mode: 0o4640},
	}
	for i := range entries {
		entries[i].ModTime, entries[i].Format = old, tar.FormatPAX
	}
	left, err := unpack(t, archive(t, entries...), top, plenty)
	if err != nil || len(left) > 0 {
		t.Fatal(err, left)
	}
	for name, mode := range map[string]string{".": "drwx--x---", "sub": "drwx--x---", "sub/aged": "-rw-r-----"} {
		info, err := os.Stat(filepath.Join(top, name))
		if err != nil || info.Mode().String() != mode || !info.ModTime().Equal(old) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestNamesBelowTheTopAreNamesOnly(t *testing.T) {
	for name, want := range map[string]string{
		"d": "", "d/": "", "./": "", "d/a": "a", "./a/b/": "a/b", "d/-rf": "-rf", "d/a b": "a b", "d/a\nb": "a\nb", "d/...": "...", "d/raw\xff": "raw\xff",
		"": "-", "/": "-", "/d": "-", "..": "-", "../x": "-", "d/..": "-", "d/.": "-", "d//x": "-", "d/a\x00": "-", "d/a/../b": "-", "d//": "-",
	} {
		rel, why := below(name)
		if why != "" {
			rel = "-"
		}
		if rel != want {
			t.Errorf("%q is %q below the top, want %q", name, rel, want)
		}
	}
}
