// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makeTree makes a tree t that has all that a copy keeps.
const makeTree = `
mkdir -p t/sub/deep t/bare t/only
printf text > t/run.sh; chmod 751 t/run.sh
head -c 300000 /dev/urandom > t/sub/blob; : > t/empty
ln t/sub/blob t/again; ln t/sub/blob t/sub/deep/third
ln -s sub/blob t/link; ln -s ../run.sh t/sub/up; ln -s no/such t/gone
printf x > "t/new
line"; printf x > t/-rf; printf x > "t/ü and space"; printf x > "$(printf 't/raw\377byte')"; printf x > t/.hidden; printf x > 't/a\b'
printf x > t/$(printf 'n%.0s' $(seq 255))
touch -d "2001-02-03 04:05:06.123456789Z" t/run.sh t/sub/blob t/only
chmod 1777 t/bare; chmod 711 t/only; touch -d "2002-02-03 04:05:06.5Z" t/bare t/sub`

// listTree lists all that stat knows of a tree but owners, and the times of links and inode numbers.
const listTree = `cd "$1" && find . -printf '%P %y %#m %n %l ' \( -type l -printf '\n' -o -printf '%T@\n' \) | sort && find . -type f -exec sha256sum {} + | sort`

func sh(t *testing.T, dir, script string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-ec", script, "sh"}, args...)...)
	c.Dir, c.Env = dir, append(os.Environ(), "LC_ALL=C")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func TestACopyIsWhatTarMakes(t *testing.T) {
	top := t.TempDir()
	sh(t, top, makeTree+"\nmkdir tar back fromtar\ntar -C t --format=pax -cf all.tar . && tar -C tar -xpf all.tar")
	want := sh(t, top, listTree, "tar")

	var left []string
	c := &Copy{Most: plenty * 10, Left: func(name, why string) { left = append(left, name+": "+why) }}
	var b bytes.Buffer
	p, err := c.NewPacker(t.Context(), &b)
	must(t, err)
	must(t, p.Add(filepath.Join(top, "t"), "."))
	must(t, p.Close())
	ours := b.Bytes()
	must(t, os.WriteFile(filepath.Join(top, "ours.tar"), ours, 0o600))
	sh(t, top, "tar -C back -xpf ours.tar")
	if got := sh(t, top, listTree, "back"); got != want {
		t.Errorf("tar makes of our archive:\n%s\nwant:\n%s", got, want)
	}

	var relayed bytes.Buffer
	p, err = c.NewPacker(t.Context(), &relayed)
	must(t, err)
	must(t, p.AddArchive(bytes.NewReader(ours), "named"))
	must(t, p.Close())
	// A sticky bit is not for this machine, where directories may be shared.
	want = strings.Replace(want, "bare d 01777", "bare d 0777", 1)
	for name, from := range map[string][]byte{"ours": ours, "relayed": relayed.Bytes()} {
		must(t, c.Unpack(t.Context(), bytes.NewReader(from), filepath.Join(top, name)))
		if got := sh(t, top, listTree, name); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
	if len(left) > 0 {
		t.Errorf("left out: %q", left)
	}
}

// names packs a tree, and returns the names in the archive and what was left out.
func names(t *testing.T, c *Copy, from, as string) (got, left []string) {
	t.Helper()
	c.Left = func(name, why string) { left = append(left, name+": "+why) }
	var b bytes.Buffer
	p, err := c.NewPacker(t.Context(), &b)
	must(t, err)
	must(t, p.Add(from, as))
	must(t, p.Close())
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err != nil {
			return got, left
		}
		got = append(got, string(h.Typeflag)+" "+h.Name)
	}
}

func TestPackerFollowsAndExcludes(t *testing.T) {
	top := t.TempDir()
	sh(t, top, `mkdir -p t/a/b t/x/build/y out/sub; echo x > out/sub/f; echo x > t/a/f.log; echo x > t/x/build/y/f; mkfifo t/pipe
ln -s ../out t/out; ln -s .. t/a/round; ln -s no t/gone; ln -s ../out/sub/f t/f; ln -s t lt`)
	got, left := names(t, &Copy{Exclude: []string{"*.log", "x/build/**"}}, filepath.Join(top, "lt"), "t")
	if all := strings.Join(got, ","); len(got) != 8 || strings.Contains(all, "log") || strings.Contains(all, "build") || !strings.Contains(all, "2 t/out") {
		t.Errorf("got %q", got)
	}
	if len(left) != 1 || !strings.HasSuffix(left[0], "pipe: a named pipe") {
		t.Errorf("left out: %q", left)
	}
	got, left = names(t, &Copy{Follow: true}, filepath.Join(top, "t"), "t")
	if all := strings.Join(got, ","); strings.Contains(all, "2 ") || !strings.Contains(all, "0 t/out/sub/f") || !strings.Contains(all, "0 t/f") {
		t.Errorf("got %q", got)
	}
	if all := strings.Join(left, ","); len(left) != 3 || !strings.Contains(all, "a/round: a link to a directory that it is in") || !strings.Contains(all, "gone: no such file") {
		t.Errorf("left out: %q", left)
	}
	if _, err := (&Copy{Exclude: []string{"["}}).NewPacker(t.Context(), &bytes.Buffer{}); err == nil {
		t.Error("a bad pattern was taken")
	}
}
