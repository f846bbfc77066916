// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"

	"sandpit.dev/image/entry"
)

// debianSuite is the release that recipes build on.
const debianSuite = "bookworm"

// searchPath finds what a user installs for himself before the system's.
const searchPath = "/home/sandbox/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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

// basePackages are what a shell is expected to have. The python image has them, too, so that one download serves both.
var basePackages = []string{
	"procps", "git", "curl", "jq", "ripgrep", "ca-certificates", "less", "unzip", "xz-utils",
	"wget", "rsync", "openssh-client",
	"nano", "vim-tiny", "file", "patch", "zip", "bzip2", "netbase", "tzdata",
}

// baseRecipe is a Debian 12 with the usual tools of a shell, for entries to begin with.
func baseRecipe() recipe {
	return recipe{
		Entry: Entry{
			Name:     "base",
			Title:    "Debian with the usual tools of a shell: git, curl, wget, rsync, ssh, jq and ripgrep; no Python, Node or compiler",
			Packages: debianPackages(basePackages),
			ByAdmin:  true,
		},
		Contents: map[string]any{
			// Revision changes when the code of a stage changes what comes out.
			"revision": 1,
			"suite":    debianSuite,
			"packages": basePackages,
			"dpkg":     dpkgOptions,
		},
		Env: map[string]string{"PATH": searchPath, "LANG": "C.UTF-8"},
		Stages: []stage{
			packagesStage(basePackages),
			{Name: "configure", Weight: 5, Run: configure},
		},
		Inspect: inspect(baseTools),
	}
}

// packagesStage makes the root, of Debian's packages.
func packagesStage(packages []string) stage {
	return stage{Name: "packages", Weight: 60, Run: func(ctx context.Context, w *work) error {
		return debian(ctx, w, debianSuite, packages, dpkgOptions)
	}}
}

// debianPackages are packages of Debian's by their names.
func debianPackages(names []string) []entry.Package {
	all := make([]entry.Package, len(names))
	for i, name := range names {
		all[i] = entry.Package{Tool: entry.Apt, Name: name}
	}
	return all
}
