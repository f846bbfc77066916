// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// nodeRange is what npm and pip may choose from: TypeScript runs without a
// flag from 22.18 on.
const (
	nodeRangeNPM = "^22.18.0"
	nodeRangePip = ">=22.18,<23"
	npmRange     = "^10.9.0"
)

var pythonPackages = []string{
	// what was asked for
	"python3", "python3-pip", "python3-venv", "python3-numpy", "python3-matplotlib", "ipython3",
	"procps", "git", "curl", "jq", "ripgrep", "ca-certificates", "less", "unzip", "xz-utils",
	// what agents reach for, and cannot install where the network is off
	"python3-pandas", "python3-pytest", "python3-requests",
	"gcc", "g++", "make", "libc6-dev", "python3-dev", "wget", "rsync", "openssh-client",
	// numpy's own choice of a BLAS is many times slower
	"libopenblas0-pthread",
	// matplotlib's fonttools wants this or scipy, which is larger
	"python3-munkres",
	// small, and missed at once by who works in a shell
	"nano", "vim-tiny", "file", "patch", "zip", "bzip2", "netbase", "tzdata",
}

// pythonRecipe is a Debian 12 with Python 3, a compiler, the usual tools of a
// shell, and a Node that runs TypeScript.
func pythonRecipe() recipe {
	return recipe{
		Entry: Entry{
			Name:  "python",
			Title: "Debian with Python, numpy, pandas, matplotlib, ipython, pytest, requests, pip, Node, a C and C++ compiler, make, git, curl, wget, rsync, ssh, jq and ripgrep",
			Aliases: []string{
				"debian-12", "code-interpreter",
				"python-3.12", "python-3.12-bare", "python:3.12", "node-22", "ubuntu-24.04",
				"mcpgateway/sandbox-python:3.12", "mcpgateway/sandbox-runtime:latest", "mcpgateway/skills-runtime:latest",
			},
			Packages: debianPackages(pythonPackages),
		},
		Contents: map[string]any{
			// Revision changes when the code of a stage changes what comes out.
			"revision":      2,
			"suite":         debianSuite,
			"packages":      pythonPackages,
			"dpkg":          dpkgOptions,
			"node":          []string{nodeRangeNPM, nodeRangePip, npmRange},
			"sitecustomize": siteCustomize,
		},
		Env: map[string]string{"PATH": searchPath, "LANG": "C.UTF-8"},
		Stages: []stage{
			packagesStage(pythonPackages),
			{Name: "node", Weight: 10, Run: node},
			{Name: "configure", Weight: 5, Run: configurePython},
			{Name: "sitecustomize", Weight: 1, Run: customizePython},
		},
		Inspect: inspect(pythonTools),
	}
}

// configurePython is configure, with the names by which people call Python, and with what its first use would make.
func configurePython(ctx context.Context, w *work) error {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := settle(root); err != nil {
		return err
	}
	if err := replaceLink(root, "python3", "usr/bin/python"); err != nil {
		return err
	}
	if _, err := root.Lstat("usr/bin/ipython"); errors.Is(err, fs.ErrNotExist) {
		if err := root.Symlink("ipython3", "usr/bin/ipython"); err != nil {
			return err
		}
	}
	w.progress(0.3, "preparing matplotlib's list of fonts")
	// Without it the first import in every sandbox makes it, in seconds.
	if _, err := w.chroot(ctx, inside{Home: "/" + sandboxHome}, "python3", "-c", "import matplotlib.font_manager"); err != nil {
		return err
	}
	return strip(root)
}
