// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"

	"sandpit.dev/image/entry"
)

// debianSuite is the release that recipes build on.
const debianSuite = "bookworm"

// nodeRange is what npm and pip may choose from: TypeScript runs without a
// flag from 22.18 on.
const (
	nodeRangeNPM = "^22.18.0"
	nodeRangePip = ">=22.18,<23"
	npmRange     = "^10.9.0"
)

// searchPath finds what a user installs for himself before the system's.
const searchPath = "/home/sandbox/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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

// dpkgOptions keep out what only a person at a terminal reads. They stay in
// the image, so a package that is installed later is as lean. Licences stay.
// EXTERNALLY-MANAGED is what makes pip refuse to work without a flag.
var dpkgOptions = []string{
	"path-exclude=/usr/share/man/*",
	"path-exclude=/usr/share/info/*",
	"path-exclude=/usr/share/locale/*",
	"path-include=/usr/share/locale/locale.alias",
	"path-exclude=/usr/share/doc/*",
	"path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/lib/python3*/EXTERNALLY-MANAGED",
	// Extensions of Python are built without its static library.
	"path-exclude=/usr/lib/*/libpython3*.a",
	"path-exclude=/usr/lib/python3*/config-*/libpython3*.a",
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
			{Name: "packages", Weight: 60, Run: func(ctx context.Context, w *work) error {
				return debian(ctx, w, debianSuite, pythonPackages, dpkgOptions)
			}},
			{Name: "node", Weight: 10, Run: node},
			{Name: "configure", Weight: 5, Run: configure},
			{Name: "sitecustomize", Weight: 1, Run: customizePython},
		},
		Inspect: pythonContents,
	}
}

// debianPackages are packages of Debian's by their names.
func debianPackages(names []string) []entry.Package {
	all := make([]entry.Package, len(names))
	for i, name := range names {
		all[i] = entry.Package{Tool: entry.Apt, Name: name}
	}
	return all
}
