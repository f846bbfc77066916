// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// archiveOf makes a tar archive. A file's content is its Linkname.
func archiveOf(t *testing.T, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
			h.Size = int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		h.Format = tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// packedOf lists what is in an archive of a path.
func packedOf(t *testing.T, c *agent.Client, path string, o sandbox.PackFilesOptions) (map[string]string, sandbox.FilesPacked) {
	t.Helper()
	_, a, err := c.Pack(within(t), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got := make(map[string]string)
	for r := tar.NewReader(a); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		if len(text) > 40 {
			text = fmt.Sprintf("%d bytes", len(text))
		}
		got[h.Name] = fmt.Sprintf("%c %o %s%s", h.Typeflag, h.Mode, h.Linkname, text)
	}
	if _, err := io.Copy(io.Discard, a); err != nil {
		t.Fatal(err)
	}
	return got, a.Sum()
}

func leftOf(sum sandbox.FilesPacked) string {
	var all []string
	for _, l := range sum.Left {
		all = append(all, l.Path+": "+l.Reason)
	}
	return strings.Join(all, "\n")
}

func testArchive(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	old := time.Date(2001, 2, 3, 4, 5, 6, 123456789, time.UTC)
	t.Run("WhatIsUnpackedIsPackedAgain", func(t *testing.T) {
		c := open(t)
		big := strings.Repeat("0123456789abcdef", 300_000/16)
		odd := "odd \xff\n" + strings.Repeat("n", 120)
		in := archiveOf(t,
			tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o750, ModTime: old},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/f", Linkname: "text", Mode: 0o640, ModTime: old},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/empty", Mode: 0o600},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/big", Linkname: big, Mode: 0o755, ModTime: old},
			tar.Header{Typeflag: tar.TypeDir, Name: "d/closed/", Mode: 0o555, ModTime: old},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/closed/in", Linkname: "in", ModTime: old},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "d/link", Linkname: "/etc/passwd", ModTime: old},
			tar.Header{Typeflag: tar.TypeLink, Name: "d/hard", Linkname: "d/f"},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/" + odd, Linkname: "odd", ModTime: old},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/suid", Linkname: "s", Mode: 0o6755},
		)
		sum, err := c.Unpack(within(t), ".", in, sandbox.UnpackFilesOptions{})
		if err != nil || sum.Entries != 10 || sum.LeftAll != 0 {
			t.Fatalf("%+v, %v", sum, err)
		}
		got, sum := packedOf(t, c, "d", sandbox.PackFilesOptions{})
		want := map[string]string{
			"d/": "5 750 ", "d/empty": "0 600 ", "d/big": "0 755 300000 bytes", "d/closed/": "5 555 ", "d/closed/in": "0 644 in",
			"d/link": "2 777 /etc/passwd", "d/" + odd: "0 644 odd", "d/suid": "0 755 s",
		}
		if strings.HasPrefix(got["d/f"], "0") { // whichever the directory has first
			want["d/f"], want["d/hard"] = "0 640 text", "1 640 d/f"
		} else {
			want["d/hard"], want["d/f"] = "0 640 text", "1 640 d/hard"
		}
		if diff := cmp.Diff(want, got); diff != "" || sum.LeftAll != 0 {
			t.Errorf("left out: %q; -want +got:\n%s", leftOf(sum), diff)
		}
		if got := sh(t, c, "stat -c %.9Y d d/f d/big d/closed d/link | sort -u; stat -c %h d/f; chmod 755 d/closed"); got != "981173106.123456789\n2\n" {
			t.Errorf("times and names: %q", got)
		}
		if got := sh(t, c, "tr -d 0-9a-f < d/big | wc -c"); strings.TrimSpace(got) != "0" {
			t.Errorf("the big file has other bytes: %s", got)
		}
	})
	t.Run("HolesStay", func(t *testing.T) {
		c := open(t)
		content := strings.Repeat("x", 4096) + strings.Repeat("\x00", 8<<20) + "end"
		if _, err := c.Unpack(within(t), ".", archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "holes", Linkname: content}), sandbox.UnpackFilesOptions{}); err != nil {
			t.Fatal(err)
		}
		if get(t, c, "holes") != content {
			t.Error("the content is another")
		}
		if got := sh(t, c, "du -k holes | cut -f1"); len(strings.TrimSpace(got)) > 2 {
			t.Errorf("it takes %s KiB", got)
		}
	})
	t.Run("NothingLeavesTheDirectory", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir in; ln -s .. in/was; echo precious > precious; chmod 644 precious")
		in := archiveOf(t,
			tar.Header{Typeflag: tar.TypeReg, Name: "../up", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeReg, Name: "a/../../up", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeReg, Name: "/tmp/evil-absolute", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeReg, Name: "was/up", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "out", Linkname: ".."},
			tar.Header{Typeflag: tar.TypeReg, Name: "out/up", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeReg, Name: "out/precious", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeDir, Name: "out/updir/"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "abs", Linkname: "/"},
			tar.Header{Typeflag: tar.TypeReg, Name: "abs/tmp/evil-absolute", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeReg, Name: "abs/proc/self/oom_score_adj", Linkname: "1000"},
			tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "../precious"},
			tar.Header{Typeflag: tar.TypeLink, Name: "hard2", Linkname: "out/precious"},
			tar.Header{Typeflag: tar.TypeLink, Name: "hard3", Linkname: "/etc/passwd"},
			tar.Header{Typeflag: tar.TypeLink, Name: "hard4", Linkname: "out"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "one", Linkname: "two"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "two", Linkname: "../.."},
			tar.Header{Typeflag: tar.TypeReg, Name: "one/up", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeChar, Name: "dev", Devmajor: 1, Devminor: 3},
			tar.Header{Typeflag: tar.TypeBlock, Name: "blk", Devmajor: 8},
			tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "precious", Linkname: "../precious"},
			tar.Header{Typeflag: tar.TypeReg, Name: "precious", Linkname: "new"}, // replaces the link
			tar.Header{Typeflag: tar.TypeReg, Name: "fine", Linkname: "fine"},
		)
		sum, err := c.Unpack(within(t), "in", in, sandbox.UnpackFilesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if sum.LeftAll != 17 || len(sum.Left) != 17 {
			t.Errorf("%d are left out, want 17:\n%s", sum.LeftAll, leftOf(sum))
		}
		if got := sh(t, c, "cat precious in/precious in/fine; ls -A . | sort; ls -A in | sort; test -e /tmp/evil-absolute && echo OUT; find in -type p -o -type c -o -type b"); got != "precious\nnewfinein\nprecious\nabs\nfine\none\nout\nprecious\ntwo\nwas\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("WhatIsThereIsReplacedWhole", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir d d/sub; echo old > d/f; ln d/f d/other; echo x > d/file; echo no > d/ro; chmod 444 d/ro")
		sum, err := c.Unpack(within(t), "d", archiveOf(t,
			tar.Header{Typeflag: tar.TypeReg, Name: "f", Linkname: "new"},
			tar.Header{Typeflag: tar.TypeReg, Name: "sub", Linkname: "no"},
			tar.Header{Typeflag: tar.TypeDir, Name: "file/"},
			tar.Header{Typeflag: tar.TypeReg, Name: "file/in", Linkname: "no"},
			tar.Header{Typeflag: tar.TypeReg, Name: "deep/er/f", Linkname: "made"},
		), sandbox.UnpackFilesOptions{})
		if err != nil || sum.LeftAll != 3 {
			t.Errorf("%v; left out:\n%s", err, leftOf(sum))
		}
		if got := sh(t, c, "cat d/f d/other d/file d/deep/er/f; ls -A d"); got != "newold\nx\nmadedeep\nf\nfile\nother\nro\nsub\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("WhatIsNoArchiveIsTold", func(t *testing.T) {
		c := open(t)
		whole := archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "f", Linkname: strings.Repeat("x", 5000)}).Bytes()
		for what, in := range map[string][]byte{"text": bytes.Repeat([]byte("no archive "), 100), "cut": whole[:2000], "a header": whole[:512]} {
			_, err := c.Unpack(within(t), ".", bytes.NewReader(in), sandbox.UnpackFilesOptions{})
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := names(t, c, "."); len(got) != 0 {
			t.Errorf("it left %q", got)
		}
		broken := errors.New("the source broke")
		_, err := c.Unpack(within(t), ".", io.MultiReader(bytes.NewReader(whole[:1500]), failing{broken}), sandbox.UnpackFilesOptions{})
		if !errors.Is(err, broken) {
			t.Errorf("cut: %v", err)
		}
		_, err = c.Unpack(within(t), ".", bytes.NewReader(whole), sandbox.UnpackFilesOptions{Most: 4999})
		wantCode(t, err, fault.TooLarge)
		_, err = c.Unpack(within(t), "no/such", bytes.NewReader(whole), sandbox.UnpackFilesOptions{})
		wantCode(t, err, fault.NotFound)
		if _, err = c.Unpack(within(t), "no/such", bytes.NewReader(whole), sandbox.UnpackFilesOptions{MakeParents: true, Sync: true}); err != nil {
			t.Error(err)
		}
	})
	t.Run("ChoosingWhatIsPacked", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p d/sub/deep d/x; echo 1 > d/a.log; echo 2 > d/sub/b.log; echo 3 > d/sub/deep/c; echo 4 > d/x/y; ln -s ../a.log d/sub/l; ln -s . d/loop; ln -s nowhere d/dead; mkfifo d/pipe")
		got, sum := packedOf(t, c, "d/.", sandbox.PackFilesOptions{Exclude: []string{"*.log", "sub/*/c", "x"}})
		want := map[string]string{"./": "5 755 ", "./sub/": "5 755 ", "./sub/deep/": "5 755 ", "./sub/l": "2 777 ../a.log", "./loop": "2 777 .", "./dead": "2 777 nowhere"}
		if diff := cmp.Diff(want, got); diff != "" || leftOf(sum) != "./pipe: a fifo" {
			t.Errorf("left out: %q; -want +got:\n%s", leftOf(sum), diff)
		}
		got, sum = packedOf(t, c, "d/sub/", sandbox.PackFilesOptions{Follow: true})
		want = map[string]string{"sub/": "5 755 ", "sub/deep/": "5 755 ", "sub/deep/c": "0 644 3\n", "sub/l": "0 644 1\n", "sub/b.log": "0 644 2\n"}
		if diff := cmp.Diff(want, got); diff != "" || sum.LeftAll != 0 {
			t.Errorf("left out: %q; -want +got:\n%s", leftOf(sum), diff)
		}
		_, sum = packedOf(t, c, "d", sandbox.PackFilesOptions{Follow: true})
		if sum.LeftAll != 3 { // the loop, the dead link, the pipe
			t.Errorf("left out:\n%s", leftOf(sum))
		}
		if got, _ := packedOf(t, c, "d/loop", sandbox.PackFilesOptions{}); got["loop"] != "2 777 ." || len(got) != 1 {
			t.Errorf("a link: %q", got)
		}
		_, _, err := c.Pack(within(t), "d/pipe", sandbox.PackFilesOptions{})
		wantCode(t, err, fault.Invalid)
		_, _, err = c.Pack(within(t), "none", sandbox.PackFilesOptions{})
		wantCode(t, err, fault.NotFound)
		_, _, err = c.Pack(within(t), "d", sandbox.PackFilesOptions{Exclude: []string{"["}})
		wantCode(t, err, fault.Invalid)
		if o.OwnRoot {
			_, _, err = c.Pack(within(t), "/proc", sandbox.PackFilesOptions{})
			wantCode(t, err, fault.Denied)
			_, err = c.Unpack(within(t), "/proc/self", archiveOf(t), sandbox.UnpackFilesOptions{})
			wantCode(t, err, fault.Denied)
		}
	})
}
