// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/fault"
)

// debian makes w.root: a minimal Debian of the suite with the packages.
func debian(ctx context.Context, w *work, suite string, packages, dpkgOptions []string) error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Unsupported, "an image can be built only by root").
			WithRemedy("run the command as root, or use a directory of images that root has built")
	}
	if err := needMmdebstrap(ctx, w); err != nil {
		return err
	}
	if err := os.RemoveAll(w.root); err != nil {
		return err
	}
	// Temporary files of a killed build are removed with its work directory.
	tmp := filepath.Join(w.dir, "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	archives := filepath.Join(w.cache, "apt")
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return err
	}

	args := []string{
		"mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase", "--verbose",
		"--include=" + strings.Join(packages, ","),
		// Downloads land in the cache at once, so that a kill loses none of them.
		// "$1" is the new root; the hook runs in this build's mount namespace.
		`--setup-hook=mkdir -p "$1/var/cache/apt/archives" && mount --bind "$SANDPIT_ARCHIVES" "$1/var/cache/apt/archives"`,
		`--customize-hook=umount "$1/var/cache/apt/archives"`,
		"--skip=essential/unlink",
	}
	options := append(hostAptOptions(ctx), aptBuild...)
	if len(w.authorities) > 0 {
		path, err := w.trustFile("apt.pem", aptTrusts(options))
		if err != nil {
			return err
		}
		options = append(options, fmt.Sprintf("%s %q", aptAuthorities, path))
	}
	for _, opt := range options {
		args = append(args, "--aptopt="+opt)
	}
	// The finished image is flushed as a whole; a flush for each package doubles
	// the time. The image keeps only the recipe's own options.
	for _, opt := range append([]string{"force-unsafe-io"}, dpkgOptions...) {
		args = append(args, "--dpkgopt="+opt)
	}
	args = append(args, suite, w.root)
	if text := aptSources("/etc/apt", suite); text != "" {
		path := filepath.Join(w.dir, "debian.sources")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		args = append(args, path)
	}

	count := newAptCount(w)
	w.lines.each = count.line
	err := w.confined(ctx, hostEnv("SANDPIT_ARCHIVES="+archives, "TMPDIR="+tmp), w.lines, args...)
	w.lines.each = nil
	if err != nil {
		return err
	}
	if err := keepDpkgOptions(w.root, dpkgOptions); err != nil {
		return err
	}
	installed, err := installedPackages(w.root)
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, p := range installed {
		fmt.Fprintf(sum, "%s %s %s\n", p.name, p.version, p.arch)
	}
	w.resolved("packages", hex.EncodeToString(sum.Sum(nil)))
	return pruneArchives(archives, installed)
}

func keepDpkgOptions(path string, options []string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll("etc/dpkg/dpkg.cfg.d/99mmdebstrap"); err != nil {
		return err
	}
	return replaceFile(root, "etc/dpkg/dpkg.cfg.d/sandpit", strings.Join(options, "\n")+"\n", 0o644)
}

// aptBuild bounds a download that hangs.
var aptBuild = []string{`Acquire::Retries "3"`, `Acquire::http::Timeout "60"`, `Acquire::https::Timeout "60"`}

// hostAptOptions returns the host's settings for reaching mirrors (proxies,
// certificates), which apt in the new root would not read.
func hostAptOptions(ctx context.Context) []string {
	out, err := hostCommand(ctx, "apt-config", "dump").Output()
	if err != nil {
		return nil // no apt on this host: nothing is set
	}
	var opts []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(strings.TrimSpace(line), ";")
		key, _, _ := strings.Cut(line, " ")
		low := strings.ToLower(key)
		if strings.HasPrefix(low, "acquire::http::") || strings.HasPrefix(low, "acquire::https::") ||
			strings.HasPrefix(low, "acquire::check-") || strings.HasPrefix(low, "acquire::forceipv") {
			opts = append(opts, line)
		}
	}
	return opts
}

// aptCount makes progress of apt's and dpkg's lines.
type aptCount struct {
	w *work
	// planned is what apt said last that it would install; it says so also
	// when it only tries, so it counts when unpacking begins.
	planned     int
	total, seen int
	fetch       aptFetch
}

var newlyInstalled = regexp.MustCompile(`, (\d+) newly installed`)

// leastPackages is what a minimal system with Python has: the total before apt
// has said it for all its steps.
const leastPackages = 220

func newAptCount(w *work) *aptCount { return &aptCount{w: w, fetch: aptFetch{now: time.Now}} }

func (c *aptCount) line(line string) {
	if m := newlyInstalled.FindStringSubmatch(line); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			c.planned = n
		}
		return
	}
	fetching := c.fetch.line(line)
	switch {
	case fetching != "":
		line = fetching
	case strings.HasPrefix(line, "Get:"):
	case strings.HasPrefix(line, "Unpacking "):
		c.total += 2 * c.planned
		c.planned = 0
		c.seen++
	case strings.HasPrefix(line, "Setting up "):
		c.seen++
	default:
		return
	}
	part := float64(c.seen) / float64(max(c.total, 2*leastPackages))
	if c.fetch.size > 0 { // else all is in the cache
		const ofFetching = 0.3
		part = ofFetching*c.fetch.part() + (1-ofFetching)*part
	}
	c.w.progress(part, line)
}

// debPackage is one installed package.
type debPackage struct{ name, version, arch string }

// maxStatusBytes bounds dpkg's database; a full desktop has 4 MiB.
const maxStatusBytes = 64 << 20

// installedPackages reads dpkg's database in root, sorted.
func installedPackages(root string) ([]debPackage, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Open("var/lib/dpkg/status")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStatusBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxStatusBytes {
		return nil, fmt.Errorf("dpkg's status file has more than %d bytes", maxStatusBytes)
	}
	var all []debPackage
	for block := range bytes.SplitSeq(data, []byte("\n\n")) {
		var p debPackage
		installed := false
		lines := bufio.NewScanner(bytes.NewReader(block))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "Package":
				p.name = value
			case "Version":
				p.version = value
			case "Architecture":
				p.arch = value
			case "Status":
				installed = strings.HasSuffix(value, " installed")
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
		if installed && p.name != "" {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("dpkg's status file lists no installed package")
	}
	slices.SortFunc(all, func(a, b debPackage) int { return strings.Compare(a.name+a.arch, b.name+b.arch) })
	return all, nil
}

// pruneArchives removes cached packages that the finished root has in another
// version: they were superseded. What it does not have may be another recipe's.
func pruneArchives(dir string, installed []debPackage) error {
	has, keep := make(map[string]bool, len(installed)), make(map[string]bool, len(installed))
	for _, p := range installed {
		has[p.name] = true
		keep[p.name+"_"+strings.ReplaceAll(p.version, ":", "%3a")+"_"+p.arch+".deb"] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), "_")
		if strings.HasSuffix(e.Name(), ".deb") && has[name] && !keep[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
