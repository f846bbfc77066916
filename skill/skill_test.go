// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
)

const plainText = "---\nname: data-analyzer\ndescription: Analyses data. Use with CSV files.\n---\n\n# How\n"

// file is an entry of an archive that a test writes.
type file struct {
	name, data string
	mode       fs.FileMode
	method     uint16
}

func archive(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: f.method}
		if f.mode != 0 {
			h.SetMode(f.mode)
		}
		fw, err := w.CreateHeader(h)
		if err == nil && f.data != "" {
			_, err = io.WriteString(fw, f.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadTakesAPackageInAllItsForms(t *testing.T) {
	t.Parallel()
	files := func(dir string) []file {
		return []file{
			{name: dir + "scripts/run.sh", data: "#!/bin/sh\necho hi\n"},
			{name: dir + "scripts/tool", data: "x", mode: 0o755},
			{name: dir + File, data: plainText},
			{name: dir + "references/", mode: fs.ModeDir | 0o755},
			{name: dir + "references/a b.md", data: "text", method: zip.Deflate},
			{name: "__MACOSX/._x", data: "x"},
			{name: dir + ".DS_Store", data: "x"},
		}
	}
	want := []FileInfo{{File, int64(len(plainText)), false}, {"references/a b.md", 4, false}, {"scripts/run.sh", 18, true}, {"scripts/tool", 1, true}}
	var digests []string
	for name, data := range map[string][]byte{"AtTheRoot": archive(t, files("")...), "InADirectory": archive(t, files("some dir/")...)} {
		p, err := Read(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, p.List()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if p.Name != "data-analyzer" || p.Text() != plainText {
			t.Errorf("%s: got the name %q and the text %q", name, p.Name, p.Text())
		}
		digests = append(digests, p.Digest())
	}
	if digests[0] != digests[1] {
		t.Errorf("the same files have the digests %q", digests)
	}
	p, err := Read([]byte(plainText))
	if err != nil || len(p.Files) != 1 || p.Digest() == digests[0] {
		t.Errorf("a text alone: got %v, %v", p, err)
	}
}

func TestAPackageComesBackAsItWas(t *testing.T) {
	t.Parallel()
	p, err := Read(archive(t, file{name: File, data: plainText}, file{name: "a/b/c.sh", data: "#!x"}, file{name: "empty"}))
	if err != nil {
		t.Fatal(err)
	}
	once, err := p.Zip()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(once)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.List(), again.List()); diff != "" || p.Digest() != again.Digest() {
		t.Errorf("after Zip and Read (-want +got):\n%s", diff)
	}
	if twice, err := again.Zip(); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("the same package was written in two ways: %v", err)
	}
	var b bytes.Buffer
	if err := p.Tar(&b, "skills/x", Content{Path: ".mark", Data: []byte("m")}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d", h.Name, h.Mode, h.Size))
	}
	want := []string{fmt.Sprintf("skills/x/SKILL.md 644 %d", len(plainText)), "skills/x/a/b/c.sh 755 3", "skills/x/empty 644 0", "skills/x/.mark 644 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tar archive (-want +got):\n%s", diff)
	}
}

func TestFrontMatter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		head string
		want Meta
	}{
		"All": {
			"name: pdf\ndescription: >\n  Reads\n  PDF files.\nauthor: Alice\nversion: 1.20\nlicense: MIT\ncompatibility: needs poppler\ntags: [pdf, text]\nallowed-tools: Bash(git add:*), Read Write\n",
			Meta{"pdf", "Reads PDF files.", "Alice", "1.20", "MIT", "needs poppler", []string{"pdf", "text"}, []string{"Bash(git add:*)", "Read", "Write"}},
		},
		"InMetadata": {
			"name: pdf\ndescription: x\nmetadata:\n  author: Bob\n  version: \"2\"\n  tags: a, b c\nallowed_tools:\n- Read\n- Bash(x y)\n",
			Meta{"pdf", "x", "Bob", "2", "", "", []string{"a", "b c"}, []string{"Read", "Bash(x y)"}},
		},
		"UnknownFieldsArePassedOver": {"name: pdf\ndescription: x\nmodel: some\nhooks: {a: [1, 2]}\ntags:\n", Meta{Name: "pdf", Description: "x"}},
		"WindowsLines":               {"name: pdf\r\ndescription: x\r\n", Meta{Name: "pdf", Description: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read([]byte("\ufeff---\n" + tc.head + "---\ntext"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Meta); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHostileFrontMatterIsRefused(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	ok := "name: pdf\ndescription: x\n"
	for name, tc := range map[string]struct{ text, want string }{
		"NoFrontMatter":   {"# pdf\n", "does not begin with front matter"},
		"NoEnd":           {"---\n" + ok, "does not begin with front matter"},
		"NotYAML":         {"---\na: [\n---\n", "is not YAML"},
		"AList":           {"---\n- a\n---\n", "is not a list of fields"},
		"Empty":           {"---\n---\n", "is not a list of fields"},
		"Aliases":         {"---\n" + ok + bomb + "---\n", "an anchor or an alias"},
		"Merge":           {"---\n" + ok + "<<: {a: b}\n---\n", "not a word"},
		"Type":            {"---\n" + ok + "x: !!python/object:os.system ls\n---\n", "names a type"},
		"Binary":          {"---\n" + ok + "x: !!binary aGk=\n---\n", "names a type"},
		"Deep":            {"---\n" + ok + "x: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n---\n", "levels deep"},
		"VeryDeep":        {"---\n" + ok + "x: " + strings.Repeat("[", 8000) + strings.Repeat("]", 8000) + "\n---\n", "levels deep"},
		"Many":            {"---\n" + ok + "x: [" + strings.Repeat("a,", 2000) + "]\n---\n", "more than 1000 values"},
		"Large":           {"---\n" + ok + "x: " + strings.Repeat("a", 17<<10) + "\n---\n", "at most 16384 are allowed"},
		"Twice":           {"---\n" + ok + "name: other\n---\n", "twice"},
		"KeyIsAList":      {"---\n" + ok + "? [a]\n: b\n---\n", "not a word"},
		"NoName":          {"---\ndescription: x\n---\n", "has no name"},
		"NoDescription":   {"---\nname: pdf\n---\n", "has no description"},
		"NameIsAList":     {"---\nname: [a]\ndescription: x\n---\n", "is not a text"},
		"NameIsAPath":     {"---\nname: ../../etc\ndescription: x\n---\n", `"../../etc" is not a valid name of a skill`},
		"NameIsLong":      {"---\nname: " + strings.Repeat("a", 65) + "\ndescription: x\n---\n", "it has 65 characters"},
		"NameIsUpper":     {"---\nname: Pdf\ndescription: x\n---\n", "lower-case letters"},
		"NameEndsSo":      {"---\nname: pdf-\ndescription: x\n---\n", "single hyphens"},
		"NameIsAnId":      {"---\nname: 0b9f4f9e-0000-4000-8000-000000000001\ndescription: x\n---\n", "the form of an id"},
		"Description":     {"---\nname: pdf\ndescription: " + strings.Repeat("é", 1025) + "\n---\n", "has 1025 characters, and at most 1024"},
		"ControlInAuthor": {"---\n" + ok + "author: \"a\\eb\"\n---\n", "control character"},
		"TooManyTags":     {"---\n" + ok + "tags: [" + strings.Repeat("a,", 33) + "]\n---\n", "33 entries"},
		"NotUTF8":         {"---\n" + ok + "---\n\xff", "not text in UTF-8"},
		"ZeroByte":        {"---\n" + ok + "---\n\x00", "not text in UTF-8"},
		"Nothing":         {"", "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(tc.text))
			wantError(t, err, fault.Invalid, tc.want)
		})
	}
	_, err := Read([]byte("---\n" + ok + "---\n" + strings.Repeat("a", MaxText)))
	wantError(t, err, fault.TooLarge, "at most 262144 are allowed")
}

func TestHostileArchivesAreRefused(t *testing.T) {
	t.Parallel()
	skill := file{name: File, data: plainText}
	many := func(n int) (out []file) {
		for i := range n {
			out = append(out, file{name: fmt.Sprintf("f%d", i)})
		}
		return append(out, skill)
	}
	wholeOf := func(files ...file) []byte { return archive(t, files...) }
	zeros := strings.Repeat("\x00", MaxBytes+1)
	bomb := wholeOf(skill, file{name: "x", data: zeros, method: zip.Deflate})
	for name, tc := range map[string]struct {
		data []byte
		code fault.Code
		want string
	}{
		"NoFiles":            {wholeOf(), fault.Invalid, "has no files"},
		"NoSkill":            {wholeOf(file{name: "readme.md", data: "x"}), fault.Invalid, "has no SKILL.md"},
		"TwoDeep":            {wholeOf(file{name: "a/b/SKILL.md", data: plainText}), fault.Invalid, "has no SKILL.md"},
		"BesideItsDirectory": {wholeOf(file{name: "a/SKILL.md", data: plainText}, file{name: "b/x", data: "x"}), fault.Invalid, `"b/x" is not in the directory "a"`},
		"Up":                 {wholeOf(skill, file{name: "../x", data: "x"}), fault.Invalid, "leads out of the skill"},
		"UpInside":           {wholeOf(skill, file{name: "a/../../x", data: "x"}), fault.Invalid, "leads out of the skill"},
		"Dot":                {wholeOf(skill, file{name: "./x", data: "x"}), fault.Invalid, "leads out of the skill"},
		"Absolute":           {wholeOf(skill, file{name: "/etc/passwd", data: "x"}), fault.Invalid, "leads out of the skill"},
		"Backslash":          {wholeOf(skill, file{name: `..\x`, data: "x"}), fault.Invalid, "write / between names"},
		"DoubleSlash":        {wholeOf(skill, file{name: "a//x", data: "x"}), fault.Invalid, "leads out of the skill"},
		"Control":            {wholeOf(skill, file{name: "a\nb", data: "x"}), fault.Invalid, "cannot be seen"},
		"RightToLeft":        {wholeOf(skill, file{name: "a\u202eb", data: "x"}), fault.Invalid, "cannot be seen"},
		"NotUTF8":            {wholeOf(skill, file{name: "a\xff", data: "x"}), fault.Invalid, "not UTF-8"},
		"LongName":           {wholeOf(skill, file{name: strings.Repeat("a", 201), data: "x"}), fault.Invalid, "longer than 200 bytes"},
		"Deep":               {wholeOf(skill, file{name: strings.Repeat("a/", 17) + "x", data: "x"}), fault.Invalid, "deeper than"},
		"Link":               {wholeOf(skill, file{name: "x", data: "/etc/passwd", mode: fs.ModeSymlink | 0o777}), fault.Invalid, "symbolic link"},
		"LinkAsTheSkill":     {wholeOf(file{name: File, data: "/etc/passwd", mode: fs.ModeSymlink | 0o777}), fault.Invalid, "symbolic link"},
		"Device":             {wholeOf(skill, file{name: "x", mode: fs.ModeDevice | 0o666}), fault.Invalid, "neither a file nor a directory"},
		"Pipe":               {wholeOf(skill, file{name: "x", mode: fs.ModeNamedPipe | 0o666}), fault.Invalid, "neither a file nor a directory"},
		"DirNamedAsAFile":    {wholeOf(skill, file{name: "x", mode: fs.ModeDir | 0o755}), fault.Invalid, "the other way round"},
		"Twice":              {wholeOf(skill, file{name: "x", data: "1"}, file{name: "x", data: "2"}), fault.Invalid, `"x" twice`},
		"TheSkillTwice":      {wholeOf(skill, skill), fault.Invalid, "twice"},
		"LetterCase":         {wholeOf(skill, file{name: "skill.md", data: "x"}), fault.Invalid, "letter case alone"},
		"LetterCaseOfADir":   {wholeOf(skill, file{name: "a/x", data: "1"}, file{name: "A/y", data: "2"}), fault.Invalid, "letter case alone"},
		"FileAndDir":         {wholeOf(skill, file{name: "a", data: "1"}, file{name: "a/x", data: "2"}), fault.Invalid, "a file and a directory"},
		"ManyFiles":          {wholeOf(many(100)...), fault.Invalid, "more than 100 files"},
		"ManyEntries":        {wholeOf(many(1001)...), fault.Invalid, "more than 1000 entries"},
		"Bomb":               {bomb, fault.TooLarge, "more than 10485760 bytes together"},
		"BombOfMany":         {wholeOf(skill, file{name: "x", data: zeros[:6<<20], method: zip.Deflate}, file{name: "y", data: zeros[:6<<20], method: zip.Deflate}), fault.TooLarge, "together"},
		"LargePackage":       {append([]byte(zipMagic), zeros...), fault.TooLarge, "at most 10485760 are allowed"},
		"CutOff":             {wholeOf(skill)[:60], fault.Invalid, "not a whole one"},
		"Method":             {patched(wholeOf(skill), 10, 99), fault.Invalid, "in an unusual way"},
		"Encrypted":          {patched(wholeOf(skill), 8, 1), fault.Invalid, "encrypted"},
		"LyingSize":          {lying(bomb, uint32(len(zeros))), fault.Invalid, "broken"},
		"Broken":             {bytes.Replace(wholeOf(skill), []byte("# How"), []byte("# Why"), 1), fault.Invalid, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(tc.data)
			wantError(t, err, tc.code, tc.want)
		})
	}
}

// patched sets a number in the list of an archive's entries, at an offset in the first.
func patched(data []byte, at int, value uint16) []byte {
	binary.LittleEndian.PutUint16(data[bytes.Index(data, []byte(zipEntry))+at:], value)
	return data
}

// lying replaces a size in the headers by a small one.
func lying(data []byte, size uint32) []byte {
	var was, is [4]byte
	binary.LittleEndian.PutUint32(was[:], size)
	binary.LittleEndian.PutUint32(is[:], 10)
	return bytes.ReplaceAll(data, was[:], is[:])
}

func wantError(t *testing.T, err error, code fault.Code, part string) {
	t.Helper()
	if fault.Of(err) != code || !strings.Contains(fault.As(err).Message, part) {
		t.Errorf("got %s %q, want %s with %q", fault.Of(err), err, code, part)
	}
}

func TestComposeWritesWhatReadTakes(t *testing.T) {
	t.Parallel()
	for _, description := range []string{"plain", "with: a colon", "- a list?", "two\nlines", `"quoted" 'text' # not a comment`, "---"} {
		text, err := Compose("pdf", description, "\n# How\n")
		if err != nil {
			t.Fatal(err)
		}
		p, err := Read([]byte(text))
		if err != nil || p.Description != description || !HasHead(text) || !strings.HasSuffix(text, "---\n\n# How\n") {
			t.Errorf("%q: got %v of %q", description, err, text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(plainText))
	f.Add(archive(f, file{name: "a/" + File, data: plainText}, file{name: "a/x.sh", data: "#!"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(data)
		if err != nil {
			return
		}
		pkg, err := p.Zip()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(pkg)
		if err != nil || again.Digest() != p.Digest() {
			t.Fatalf("what was read is not read again: %v", err)
		}
		for _, c := range p.Files {
			if !fs.ValidPath(c.Path) || c.Path == "." {
				t.Fatalf("the path %q was taken", c.Path)
			}
		}
	})
}
