// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/internal/programs"
)

// apt is apt with lists of its own, for one suite. It installs nothing on the host.
type apt struct {
	c    *cache
	dir  string
	opts []string
}

func (c *cache) openApt(suite string, from programs.Archive) (*apt, error) {
	a := &apt{c: c, dir: c.path("apt", suite)}
	for _, dir := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	list, status := filepath.Join(a.dir, "debian.sources"), filepath.Join(a.dir, "status")
	for path, text := range map[string]string{list: from.Source(suite), status: ""} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for _, o := range []string{
		"Dir::Etc::SourceList=" + list, "Dir::Etc::SourceParts=-", "Dir::Etc::Preferences=-", "Dir::Etc::PreferencesParts=-",
		"Dir::State::Lists=" + filepath.Join(a.dir, "lists"), "Dir::State::status=" + status,
		"Dir::Cache=" + a.dir, "Dir::Cache::archives=" + filepath.Join(a.dir, "archives"),
		"APT::Architecture=amd64", "APT::Architectures::=amd64", "APT::Sandbox::User=root", "Acquire::Languages=none",
	} {
		a.opts = append(a.opts, "-o", o)
	}
	_, err := a.do("apt-get", "update", "-q")
	return a, err
}

func (a *apt) do(program string, args ...string) (string, error) {
	return a.c.do(program, append(slices.Clone(a.opts), args...)...)
}

// release is of the newest kernel that the suite has.
func (a *apt) release() (string, error) {
	needs, err := a.needs(meta)
	if err != nil {
		return "", err
	}
	for _, name := range needs {
		if release, ok := strings.CutPrefix(name, "linux-image-"); ok {
			return release, nil
		}
	}
	return "", fmt.Errorf("%s needs no kernel", meta)
}

// needs lists the packages of the kernel that a package of it needs.
func (a *apt) needs(name string) (needs []string, err error) {
	out, err := a.do("apt-cache", "show", "--no-all-versions", name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		field, value, _ := strings.Cut(line, ":")
		if field != "Depends" && field != "Pre-Depends" {
			continue
		}
		for one := range strings.SplitSeq(value, ",") {
			if f := strings.Fields(one); len(f) > 0 && strings.HasPrefix(f[0], "linux-") {
				needs = append(needs, f[0])
			}
		}
	}
	return needs, nil
}

// packages are those that a kernel is made of: one, or since Linux 6.19 several.
func (a *apt) packages(release string) ([]string, error) {
	all := []string{"linux-image-" + release}
	for i := 0; i < len(all); i++ {
		needs, err := a.needs(all[i])
		if err != nil {
			return nil, err
		}
		for _, n := range needs {
			if strings.HasSuffix(n, "-"+release) && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// unpack fetches a kernel's packages and unpacks them, all or nothing. They are not
// installed: nothing of theirs runs.
func (a *apt) unpack(k kernel) error {
	names, err := a.packages(k.release)
	if err != nil {
		return err
	}
	tmp := k.files + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	debs := filepath.Join(tmp, "debs")
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return err
	}
	// It downloads into the directory that it is in.
	if _, err := a.c.doIn(debs, nil, "apt-get", append(append(slices.Clone(a.opts), "download", "-q"), names...)...); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(found) != len(names) {
		return fmt.Errorf("%d packages came of %s (%v)", len(found), strings.Join(names, ", "), err)
	}
	for _, deb := range found {
		if _, err := a.c.do("dpkg-deb", "-x", deb, tmp); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(debs); err != nil {
		return err
	}
	return os.Rename(tmp, k.files)
}
