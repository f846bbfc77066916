// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "servers.json")
	if l, err := Read(path); err != nil || len(l.Servers) != 0 {
		t.Errorf("where there is none: %+v, %v", l, err)
	}
	var l List
	l.Put(Server{Name: "lab", URL: "https://lab.example", Token: "secret"})
	l.Put(Server{Name: "box", URL: "http://box.example:8080"})
	l.Current = "lab"
	for range 2 { // also one that was open to others
		if err := l.Write(path); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "windows" {
			break
		}
		file, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.Stat(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if file.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
			t.Errorf("the file is %v, its directory %v", file.Mode(), dir.Mode())
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Read(path); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("got %+v, %v; want %+v", got, err, l)
	}
	if names := l.Names(); !reflect.DeepEqual(names, []string{"box", "lab"}) {
		t.Errorf("the names are %v", names)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("there are %v", entries)
	}
}

func TestPutAndRemove(t *testing.T) {
	var l List
	l.Put(Server{Name: "a", URL: "http://a"})
	l.Put(Server{Name: "b", URL: "http://b"})
	l.Current = "a"
	l.Put(Server{Name: "a", URL: "http://c", Token: "x"})
	if s, ok := l.Find("a"); !ok || s.URL != "http://c" || l.Current != "a" || len(l.Servers) != 2 {
		t.Errorf("put again: %+v", l)
	}
	if s, ok := l.At("http://b"); !ok || s.Name != "b" {
		t.Errorf("by its address: %+v, %v", s, ok)
	}
	if _, ok := l.At("http://a"); ok {
		t.Error("it is found by the address that it had")
	}
	if !l.Remove("a") || l.Remove("a") || l.Current != "" || len(l.Servers) != 1 {
		t.Errorf("removed: %+v", l)
	}
}

func TestAFileThatIsNoneOfOurs(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":             "hello",
		"a name for a flag":   `{"servers": [{"name": "-x", "url": "http://x"}]}`,
		"the name of our own": `{"servers": [{"name": "local", "url": "http://x"}]}`,
		"a name twice":        `{"servers": [{"name": "x", "url": "http://x"}, {"name": "x", "url": "http://y"}]}`,
		"a current of none":   `{"current": "y", "servers": [{"name": "x", "url": "http://x"}]}`,
		"huge":                "{}" + strings.Repeat(" ", maxFile),
	} {
		path := filepath.Join(t.TempDir(), "servers.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory is read")
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": "/home/a"}, "/home/a/.config/sandpit/servers.json"},
		{"linux", map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "/cfg"}, "/cfg/sandpit/servers.json"},
		{"linux", map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "cfg"}, "/home/a/.config/sandpit/servers.json"},
		{"linux", map[string]string{"XDG_CONFIG_HOME": "/cfg"}, "/cfg/sandpit/servers.json"},
		{"linux", nil, ""},
		{"linux", map[string]string{"HOME": "here"}, ""},
		{"darwin", map[string]string{"HOME": "/Users/a", "XDG_CONFIG_HOME": "/cfg"}, "/Users/a/Library/Application Support/sandpit/servers.json"},
		{"darwin", nil, ""},
		{"windows", map[string]string{"AppData": "/roaming"}, "/roaming/sandpit/servers.json"},
		{"windows", map[string]string{"HOME": "/home/a"}, ""},
	} {
		got, err := Path(c.goos, func(name string) string { return c.env[name] })
		if filepath.ToSlash(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s, %v: got %q, %v; want %q", c.goos, c.env, got, err, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for host, want := range map[string]string{
		"box.example.org": "box.example.org", "127.0.0.1:8080": "127.0.0.1:8080", "[::1]:8080": "::1:8080",
		strings.Repeat("a", 100): strings.Repeat("a", maxName),
	} {
		if got := NameOf(host); got != want || CheckName(got) != nil {
			t.Errorf("%s: got %q, want %q (%v)", host, got, want, CheckName(got))
		}
	}
	for _, bad := range []string{"", "local", "-a", "a b", "http://a", "a/b", "a\x1b", strings.Repeat("a", maxName+1)} {
		if CheckName(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
