// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

// builder starts a server that makes images in a directory, by what this host's package tools are set to, and
// returns what runs a command of it.
func builder(t *testing.T, images, config string) func(args ...string) (out, said string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "sandpit.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	home := "HOME=" + os.Getenv("HOME")
	s := &server{dir: dir, env: slices.Concat(os.Environ(), environment(dir, images), []string{home, "SANDPIT_POOL=0", "SANDPIT_CONFIG=" + path})}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (string, string) {
		t.Helper()
		var said strings.Builder
		cmd := s.command(args...)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, said.String())
		}
		return strings.TrimSpace(string(out)), said.String()
	}
}

// Every name of the two, against what programs inside say of themselves.
func TestNamesMeanBaseAndNodeOnceTheyAreBuilt(t *testing.T) {
	skiptest.WithoutRoot(t, "the native runtime does")
	imagetest.Base(t)
	do := builder(t, imagetest.BaseDir(t), "images: {default: base}\n")
	do("image", "build", "node")

	listed, _ := do("image", "ls", "--format", "{{.name}} {{.aliases}} {{.status}}")
	for _, want := range []string{"base [debian-12 ubuntu-24.04] ready", "node [node-22] ready"} {
		if !strings.Contains(listed, want) {
			t.Errorf("%q is not in\n%s", want, listed)
		}
	}
	says := regexp.MustCompile(`^(node|ubuntu|debian)-([0-9.]+)$`)
	for name, want := range map[string]string{"base": "base", "debian-12": "base", "ubuntu-24.04": "base", "node": "node", "node-22": "node"} {
		box, said := do("create", "--image", name)
		told, _ := do("inspect", box, "-f", "{{.image}}|{{.image_note}}")
		inside := make(map[string]string)
		out, _ := do("exec", box, "-c", `. /etc/os-release; echo "$ID $VERSION_ID"; if command -v node >/dev/null; then node --version | sed 's/^v/node /'; fi`)
		for line := range strings.Lines(out) {
			tool, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			inside[tool] = version
		}
		holds := true
		if m := says.FindStringSubmatch(name); m != nil {
			holds = strings.HasPrefix(inside[m[1]]+".", m[2]+".")
		}
		image, note, _ := strings.Cut(told, "|")
		if image != want || holds != (note == "") || holds == strings.Contains(said, fmt.Sprintf("%q names ", name)) {
			t.Errorf("%s: it is %q with the note %q, and said %q; inside is %v", name, image, note, said, inside)
		}
	}

	box, _ := do("create", "--image", "node", "--image-exact")
	versions, _ := do("inspect", box, "-f", "v{{.image_versions.node}} {{.image_versions.npm}} {{.image_versions.python}}")
	if inside, _ := do("exec", box, "-c", `echo "$(node --version) $(npm --version)"`); versions != inside {
		t.Errorf("the list says %q, and inside is %q", versions, inside)
	}
	for script, want := range map[string]string{
		"printf 'interface P { n: number }\nconst p: P = { n: 42 };\nconsole.log(p.n as number);\n' >a.ts; node a.ts": "42",
		`mkdir p; echo '{"name":"leaf","version":"1.0.0","bin":{"leaf":"l.js"}}' >p/package.json; printf '#!/usr/bin/env node\nconsole.log("green")\n' >p/l.js; chmod +x p/l.js
npm install -g --silent --offline ./p; leaf`: "green",
		`if command -v python3 gcc; then exit 1; fi; ls /usr/lib | grep -c python`: "0",
	} {
		if out, _ := do("exec", box, "-c", "("+script+") || true"); out != want {
			t.Errorf("%s\nprints %q, want %q", script, out, want)
		}
	}
}

// Every entry of the catalogue is built, from nothing: half an hour, and gigabytes of downloads.
func TestSoakEveryEntryIsBuilt(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to build every image of the catalogue")
	}
	skiptest.WithoutRoot(t, "the native runtime does")
	do := builder(t, filepath.Join(t.TempDir(), "images"), "images: {default: base}\n")
	all, _ := do("image", "ls", "-q")
	for _, name := range strings.Fields(all) {
		do("image", "build", name)
		if out, _ := do("run", "--image", name, "--", "true"); out != "" {
			t.Errorf("%s: %q", name, out)
		}
	}
}
