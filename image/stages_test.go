// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plant makes the files of a small root; a name that ends in "/" is a directory.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInstalledPackages(t *testing.T) {
	t.Run("ListsWhatIsInstalledSorted", func(t *testing.T) {
		root := plant(t, map[string]string{"var/lib/dpkg/status": `Package: git
Status: install ok installed
Architecture: amd64
Version: 1:2.39
Description: a
 Package: not this
 long text

Package: gone
Status: deinstall ok config-files
Version: 1

Package: bash
Version: 5.2
Architecture: amd64
Status: install ok installed
`})
		got, err := installedPackages(root)
		if err != nil {
			t.Fatal(err)
		}
		want := []debPackage{{"bash", "5.2", "amd64"}, {"git", "1:2.39", "amd64"}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(debPackage{})); diff != "" {
			t.Errorf("packages (-want +got):\n%s", diff)
		}
	})
	t.Run("NoPackageIsAnError", func(t *testing.T) {
		if got, err := installedPackages(plant(t, map[string]string{"var/lib/dpkg/status": "\n\n"})); err == nil {
			t.Errorf("it lists %v", got)
		}
	})
	t.Run("ALinkOutOfTheRootIsNotRead", func(t *testing.T) {
		outside := plant(t, map[string]string{"status": "Package: bash\nStatus: install ok installed\n"})
		root := plant(t, map[string]string{"var/lib/dpkg/": ""})
		if err := os.Symlink(filepath.Join(outside, "status"), filepath.Join(root, "var/lib/dpkg/status")); err != nil {
			t.Fatal(err)
		}
		if got, err := installedPackages(root); err == nil {
			t.Errorf("it lists %v", got)
		}
	})
}

func TestPruneArchives(t *testing.T) {
	dir := plant(t, map[string]string{
		"git_1%3a2.39_amd64.deb": "", "git_1%3a2.38_amd64.deb": "", "git_1%3a2.40_all.deb": "", "git-lfs_1_amd64.deb": "", "of-another-recipe_1_all.deb": "", "lock": "", "partial/half.deb": "",
	})
	if err := pruneArchives(dir, []debPackage{{"git", "1:2.39", "amd64"}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"git_1%3a2.39_amd64.deb": "", "git-lfs_1_amd64.deb": "", "of-another-recipe_1_all.deb": "", "lock": "", "partial/half.deb": ""}
	if diff := cmp.Diff(want, below(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestAptProgress(t *testing.T) {
	var seen []float64
	w := &work{span: 1, saved: time.Now().Add(time.Hour), report: func(_, _ string, p float64) { seen = append(seen, p) }}
	count := newAptCount(w)
	lines := []string{"noise", "0 upgraded, 400 newly installed, 0 to remove and 0 not upgraded.", "Get:1 x y"}
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("Unpacking p%d (1) ...", i))
	}
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("Setting up p%d (1) ...", i))
	}
	for _, line := range lines {
		count.line(line)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] < seen[i-1] {
			t.Fatalf("it goes back from %v to %v", seen[i-1], seen[i])
		}
	}
	if got := seen[len(seen)-1]; got != 1 {
		t.Errorf("it ends at %v, want 1", got)
	}
}

func TestFetched(t *testing.T) {
	put := func(t *testing.T, dir, name string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	away := func(string) error { return errors.New("the mirror is away") }

	t.Run("AFreshArchiveIsNotFetchedAgain", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "node-22.1.0.tgz", time.Hour)
		got, err := fetched(dir, "node", ".tgz", away)
		if err != nil || got.version != "22.1.0" {
			t.Errorf("it is %+v, %v", got, err)
		}
	})
	t.Run("AnOldOneIsReplaced", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "node-22.1.0.tgz", nodeFresh)
		got, err := fetched(dir, "node", ".tgz", func(into string) error {
			put(t, into, "node-22.2.0.tgz", 100*nodeFresh)
			return nil
		})
		if err != nil || got.version != "22.2.0" {
			t.Errorf("it is %+v, %v", got, err)
		}
		if diff := cmp.Diff(map[string]string{"node-22.2.0.tgz": "node-22.2.0.tgz"}, below(t, dir)); diff != "" {
			t.Errorf("the cache (-want +got):\n%s", diff)
		}
		if got, err := fetched(dir, "node", ".tgz", away); err != nil || got.version != "22.2.0" {
			t.Errorf("then it is %+v, %v", got, err)
		}
	})
	t.Run("AnOldOneServesWhereNothingCanBeFetched", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "node-22.1.0.tgz", 10*nodeFresh)
		got, err := fetched(dir, "node", ".tgz", away)
		if err != nil || got.version != "22.1.0" {
			t.Errorf("it is %+v, %v", got, err)
		}
	})
	t.Run("WhatAKillLeftHalfIsNotTaken", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, ".node"), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, ".node"), "node-22.9.0.tgz", 0)
		if got, err := fetched(dir, "node", ".tgz", away); err == nil {
			t.Errorf("it is %+v", got)
		}
		if left := below(t, dir); len(left) != 0 {
			t.Errorf("left are %v", left)
		}
	})
	t.Run("ADownloadOfSomethingElseIsAnError", func(t *testing.T) {
		dir := t.TempDir()
		got, err := fetched(dir, "node", ".tgz", func(into string) error {
			put(t, into, "nodejs-22.2.0.tgz", 0)
			put(t, into, "node-latest.tgz", 0)
			return os.Symlink("/etc/passwd", filepath.Join(into, "node-22.3.0.tgz"))
		})
		if err == nil {
			t.Errorf("it is %+v", got)
		}
	})
}

func TestParseVersions(t *testing.T) {
	want := []string{"node", "git"}
	t.Run("ReadsToolsAndPassesOverNoise", func(t *testing.T) {
		got, err := parseVersions("warning: x=y\nnode=v22.1.0\ngit=2.39.5\nevil=<script>\n=1\n", want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"node": "22.1.0", "git": "2.39.5"}, got); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
	})
	for title, out := range map[string]string{
		"AMissingToolIsAnError":      "node=22.1.0\n",
		"AnEmptyVersionIsAnError":    "node=\ngit=2.39.5\n",
		"AnEscapeSequenceIsAnError":  "node=22\x1b[2J\ngit=2.39.5\n",
		"AnOverlongVersionIsAnError": "node=" + strings.Repeat("2", 66) + "\ngit=2.39.5\n",
	} {
		t.Run(title, func(t *testing.T) {
			if got, err := parseVersions(out, want); err == nil {
				t.Errorf("it gives %v", got)
			}
		})
	}
}

func TestParseAbsent(t *testing.T) {
	got := parseAbsent("go=1.24\nabsent=uv\nabsent=docker\nabsent=uv\nabsent=\nabsent=\x1b[2J\nabsent=a b\n absent=java\nnotabsent=ruby\n")
	if diff := cmp.Diff([]string{"docker", "java", "uv"}, got); diff != "" {
		t.Errorf("absent (-want +got):\n%s", diff)
	}
}

func TestConfigure(t *testing.T) {
	t.Run("TheUserIsAddedOnce", func(t *testing.T) {
		dir := plant(t, map[string]string{
			"etc/passwd": "root:x:0:0::/root:/bin/sh\nnotsandbox:x:5:5::/:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shadow": "root:*:1::::::\n", "etc/gshadow": "root:*::\n",
		})
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for range 2 {
			if err := addUser(root); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]string{
			"etc/passwd":  "root:x:0:0::/root:/bin/sh\nnotsandbox:x:5:5::/:/bin/sh\nsandbox:x:1000:1000::/home/sandbox:/bin/bash\n",
			"etc/group":   "root:x:0:\nsandbox:x:1000:\n",
			"etc/shadow":  "root:*:1::::::\nsandbox:*:19000:0:99999:7:::\n",
			"etc/gshadow": "root:*::\nsandbox:*::\n",
		}
		if diff := cmp.Diff(want, below(t, dir)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
	t.Run("AFileIsNeverWrittenThroughALink", func(t *testing.T) {
		outside := plant(t, map[string]string{"resolv.conf": "the host's"})
		dir := plant(t, map[string]string{"etc/": ""})
		if err := os.Symlink(filepath.Join(outside, "resolv.conf"), filepath.Join(dir, "etc/resolv.conf")); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if err := replaceFile(root, "etc/resolv.conf", "ours", 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"resolv.conf": "the host's"}, below(t, outside)); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"etc/resolv.conf": "ours"}, below(t, dir)); diff != "" {
			t.Errorf("inside (-want +got):\n%s", diff)
		}
	})
	t.Run("ADirectoryThatLeadsOutIsRefused", func(t *testing.T) {
		outside := plant(t, map[string]string{"keep": "whole"})
		dir := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(dir, "dev")); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if err := strip(root); err == nil {
			t.Error("it was followed")
		}
		if diff := cmp.Diff(map[string]string{"keep": "whole"}, below(t, outside)); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
	})
}

func TestHostEnv(t *testing.T) {
	t.Setenv("SANDPIT_ADMIN_TOKEN", "secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("https_proxy", "http://proxy.test:3128")
	env := strings.Join(hostEnv("A=b"), "\n")
	if strings.Contains(env, "secret") {
		t.Errorf("a secret of the server's reaches the programs of a build:\n%s", env)
	}
	for _, want := range []string{"https_proxy=http://proxy.test:3128", "A=b"} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not passed on:\n%s", want, env)
		}
	}
}
