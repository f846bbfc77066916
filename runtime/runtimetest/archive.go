// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// plenty is a bound of imports that no test comes near.
const plenty = 1 << 30

func archives(t *testing.T, s *suite) {
	t.Run("ExportAndImportKeepTheTree", func(t *testing.T) {
		b := s.create(t, s.spec())
		s.grow(t, b)
		b.ok("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'") // no archive has it
		want := s.describe(t, b)
		var archive bytes.Buffer
		d := s.snapshotter(t)
		if err := d.Export(t.Context(), s.keep(t, b), &archive); err != nil {
			t.Fatalf("Export: %v", err)
		}
		if err := b.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkLayer(t, archive.Bytes())
		id := sandbox.NewID()
		if _, err := d.Import(t.Context(), id, bytes.NewReader(archive.Bytes()), plenty); err != nil {
			t.Fatalf("Import: %v", err)
		}
		s.wantKept(t, id, true)
		fork := s.create(t, s.from(id))
		got := s.describe(t, fork)
		if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("what was imported differs (-want +got)\n%s", d)
		}
		fork.ok("echo more >> grown/plain; rm grown/big; mv grown/d grown/moved")
		var again bytes.Buffer
		if err := d.Export(t.Context(), s.keep(t, fork), &again); err != nil {
			t.Errorf("export what was imported: %v", err)
		}
		_, err := d.Import(t.Context(), id, bytes.NewReader(archive.Bytes()), plenty)
		wantCode(t, "Import with a taken id", err, fault.Exists)
		wantCode(t, "Export of nothing", d.Export(t.Context(), sandbox.NewID(), io.Discard), fault.NotFound)
	})
	t.Run("AWriterThatFailsEndsAnExport", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.ok("head -c 3M /dev/urandom > big")
		if err := s.snapshotter(t).Export(t.Context(), s.keep(t, b), &shortWriter{left: 100_000}); err == nil {
			t.Error("it says that all was written")
		}
	})
	t.Run("WhiteoutsAreThoseOfTheImage", func(t *testing.T) { importWhiteouts(t, s) })
	t.Run("HostileOnesAreRefused", func(t *testing.T) { importHostile(t, s) })
	t.Run("NoMoreIsKeptThanAllowed", func(t *testing.T) { importTooMuch(t, s) })
	t.Run("BrokenOnesAreRefused", func(t *testing.T) { importBroken(t, s) })
}

// checkLayer fails unless the archive has the form of an OCI layer: relative, clean
// names, parents before what is in them or not at all, hard links to earlier files,
// and whiteouts as empty files.
func checkLayer(t *testing.T, archive []byte) {
	t.Helper()
	seen := map[string]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the archive: %v", err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") || filepath.Clean(name) != name {
			t.Errorf("the archive has the name %q", h.Name)
		}
		if _, twice := seen[name]; twice {
			t.Errorf("the archive has %q twice", name)
		}
		seen[name] = h.Typeflag
		switch h.Typeflag {
		case tar.TypeLink:
			if kind, ok := seen[h.Linkname]; !ok || kind == tar.TypeDir {
				t.Errorf("%q is a link to %q, which does not come before it", name, h.Linkname)
			}
		case tar.TypeChar, tar.TypeBlock:
			t.Errorf("%q is a device", name)
		case tar.TypeReg:
			if base := filepath.Base(name); strings.HasPrefix(base, ".wh.") && h.Size != 0 {
				t.Errorf("the whiteout %q has %d bytes", name, h.Size)
			}
		}
		for key := range h.PAXRecords {
			if strings.Contains(key, "trusted.") {
				t.Errorf("%q has the record %q", name, key)
			}
		}
	}
}

// shortWriter fails after some bytes.
type shortWriter struct{ left int }

func (w *shortWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// pack makes an archive.
func pack(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := bytes.Repeat([]byte("x"), int(h.Size))
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		h.Uid, h.Gid, h.Format = 1000, 1000, tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			t.Fatalf("%q: %v", h.Name, err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatalf("%q: %v", h.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 3} }
func dir(name string) tar.Header  { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }
func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func hard(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}
func device(name string, kind byte, major, minor int64) tar.Header {
	return tar.Header{Typeflag: kind, Name: name, Devmajor: major, Devminor: minor}
}
func attributed(h tar.Header, name, value string) tar.Header {
	h.PAXRecords = map[string]string{"SCHILY.xattr." + name: value}
	return h
}

func importWhiteouts(t *testing.T, s *suite) {
	d := s.snapshotter(t)
	id := sandbox.NewID()
	archive := pack(t, dir("workspace"), dir("workspace/d"), file("workspace/d/x"), file("workspace/.wh.never"), file("workspace/.wh.d"),
		dir("home/sandbox"), file("home/sandbox/.wh..wh..opq"), file("home/sandbox/mine"), link("workspace/to", "d/x"), file("etc/.wh.shells"),
		dir("etc/skel"), file("etc/skel/.wh..wh..opq"), file("etc/skel/other"))
	if _, err := d.Import(t.Context(), id, bytes.NewReader(archive), plenty); err != nil {
		t.Fatal(err)
	}
	b := s.create(t, s.from(id))
	// What the archive itself has is of this layer: no whiteout of its own hides it.
	if got := b.ok("ls -A . ../home/sandbox; cat to; find . ../home ../etc -name '.wh*' 2>/dev/null; true"); got != ".:\nd\nto\n\n../home/sandbox:\nmine\nxxx" {
		t.Errorf("got %q", got)
	}
	if s.rooted(t) {
		if got := b.ok("ls /etc/shells 2>/dev/null; ls -A /etc/skel; ls /etc/passwd"); got != "other\n/etc/passwd" {
			t.Errorf("of the image's /etc: got %q", got)
		}
	}
}

func importHostile(t *testing.T, s *suite) {
	outside := t.TempDir()
	canary := filepath.Join(outside, "canary")
	if err := os.WriteFile(canary, []byte("alive"), 0o600); err != nil {
		t.Fatal(err)
	}
	rel := "../../../../../../../../../../../.." + outside
	for name, headers := range map[string][]tar.Header{
		"a name that goes up":             {file("../escape")},
		"one that goes up in the middle":  {dir("workspace"), file("workspace/../../escape")},
		"an absolute name":                {file(outside + "/escape")},
		"a link and a file through it":    {link("workspace/l", outside), file("workspace/l/escape")},
		"a relative link likewise":        {link("workspace/l", rel), file("workspace/l/escape")},
		"a directory through a link":      {link("l", outside), dir("l/escape")},
		"a directory that becomes a link": {dir("l"), link("l", outside), file("l/escape")},
		"a file over a link":              {link("l", canary), file("l"), tar.Header{Typeflag: tar.TypeReg, Name: "l", Size: 5, Mode: 0o777}},
		"a mode through a link":           {dir("l"), {Typeflag: tar.TypeDir, Name: "l/", Mode: 0o777}, link("l", outside)},
		"a hard link to the host":         {hard("h", canary)},
		"a hard link up":                  {hard("h", rel+"/canary")},
		"a hard link through a link":      {link("l", outside), hard("h", "l/canary")},
		"a hard link to a directory":      {dir("d"), hard("h", "d")},
		"a hard link to nothing":          {hard("h", "none")},
		"a whiteout that goes up":         {file("workspace/.wh...")},
		"a whiteout of the directory":     {file("workspace/.wh..")},
		"a whiteout of nothing":           {file("workspace/.wh.")},
		"a whiteout through a link":       {link("l", outside), file("l/.wh.canary")},
		"an opaque mark through a link":   {link("l", outside), file("l/.wh..wh..opq")},
		"a disk":                          {device("workspace/disk", tar.TypeBlock, 8, 0)},
		"the kernel's memory":             {device("workspace/mem", tar.TypeChar, 1, 1)},
		"a whiteout of the overlay's":     {device("workspace/w", tar.TypeChar, 0, 0)},
		"an opaque mark of the overlay's": {attributed(dir("etc"), "trusted.overlay.opaque", "y")},
		"a redirect of the overlay's":     {attributed(dir("workspace/r"), "trusted.overlay.redirect", "/etc")},
		"a metacopy of the overlay's":     {attributed(file("workspace/m"), "trusted.overlay.metacopy", ""), attributed(file("workspace/n"), "trusted.overlay.redirect", "/etc/shadow")},
		"an origin of the overlay's":      {attributed(file("workspace/o"), "trusted.overlay.origin", "\x00\xfb\x1d\x00")},
		"the overlay's for users":         {attributed(dir("workspace/u"), "user.overlay.opaque", "y")},
		"a capability":                    {attributed(file("workspace/c"), "security.capability", "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		"a file where a directory is":     {file("workspace"), file("workspace/x")},
		"a file below a file":             {file("workspace/f"), file("workspace/f/g")},
		"the root as a file":              {file(".")},
		"the root as a link":              {link(".", outside), file("escape")},
		"a name of the kernel's":          {dir("proc"), file("proc/x"), file("dev/null")},
		"a kind that nobody knows":        {{Typeflag: 'Z', Name: "workspace/z"}},
		"a long chain of directories":     {file(strings.Repeat("d/", 300) + "f")},
	} {
		t.Run(name, func(t *testing.T) {
			id := sandbox.NewID()
			_, err := s.snapshotter(t).Import(t.Context(), id, bytes.NewReader(pack(t, headers...)), plenty)
			if code := fault.Of(err); err != nil && code != fault.Invalid {
				t.Errorf("got %v (code %q), want none or invalid", err, code)
			}
			s.wantKept(t, id, err == nil)
			if got, readErr := os.ReadFile(canary); readErr != nil || string(got) != "alive" {
				t.Fatalf("the host's file holds %q, %v", got, readErr)
			}
			if list, _ := os.ReadDir(outside); len(list) != 1 {
				t.Fatalf("in the host's directory is %v", list)
			}
			if st, statErr := os.Stat(outside); statErr != nil || st.Mode().Perm() == 0o777 {
				t.Fatalf("the host's directory: %v, %v", st.Mode(), statErr)
			}
			if err != nil {
				return
			}
			// What was taken is harmless: a sandbox of it starts, or is refused, and nothing of
			// the host is in it.
			i, err := s.driver.Create(t.Context(), s.from(id))
			if err != nil {
				t.Logf("a sandbox of it is refused: %v", err)
				return
			}
			b := &box{t: t, Instance: i, agent: newAgent(i)}
			b.removeLater()
			o := b.run(`find . -maxdepth 3 \( -type b -o -type c \) -exec echo device {} \; ; grep -rl alive . 2>/dev/null; cat m n 2>/dev/null | grep root; ls -d ../etc 2>/dev/null >&2; true`)
			if o.Stdout != "" {
				t.Errorf("inside is %q", o.Stdout)
			}
			if s.has(t, runtime.Isolation) {
				b.ok("test -e /etc/passwd") // an opaque mark would have hidden it
			}
		})
	}
}

func importTooMuch(t *testing.T, s *suite) {
	big := pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "workspace/big", Size: 2 << 20})
	// A header that promises what never comes, and one that is mostly a hole.
	var promise bytes.Buffer
	w := tar.NewWriter(&promise)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "workspace/huge", Size: 1 << 50, Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	var many []tar.Header
	for n := range 5000 {
		many = append(many, tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("workspace/%d", n)})
	}
	for what, archive := range map[string][]byte{"a big file": big, "a promise": promise.Bytes(), "many empty files": pack(t, many...)} {
		id := sandbox.NewID()
		_, err := s.snapshotter(t).Import(t.Context(), id, bytes.NewReader(archive), 1<<20)
		if code := fault.Of(err); code != fault.TooLarge && code != fault.Invalid {
			t.Errorf("%s within 1 MiB: got %v, want too_large or invalid", what, err)
		}
		s.wantKept(t, id, false)
	}
	id := sandbox.NewID()
	if _, err := s.snapshotter(t).Import(t.Context(), id, bytes.NewReader(big), 4<<20); err != nil {
		t.Errorf("2 MiB within 4: %v", err)
	}
}

func importBroken(t *testing.T, s *suite) {
	whole := pack(t, dir("workspace"), tar.Header{Typeflag: tar.TypeReg, Name: "workspace/f", Size: 5000}, file("workspace/g"))
	for what, archive := range map[string][]byte{
		"noise":              bytes.Repeat([]byte("no archive at all "), 400),
		"an end in a header": whole[:700],
		"an end in a file":   whole[:2000],
		"a changed sum":      append(append(bytes.Clone(whole[:148]), "00000000"...), whole[156:]...),
	} {
		id := sandbox.NewID()
		_, err := s.snapshotter(t).Import(t.Context(), id, bytes.NewReader(archive), plenty)
		wantCode(t, what, err, fault.Invalid)
		s.wantKept(t, id, false)
	}
	id := sandbox.NewID()
	if _, err := s.snapshotter(t).Import(t.Context(), id, io.MultiReader(bytes.NewReader(whole[:3000]), failing{}), plenty); err == nil {
		t.Error("a reader that fails: it says that all was read")
	}
	s.wantKept(t, id, false)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
