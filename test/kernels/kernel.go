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

// suites are the releases whose kernels are checked, by age.
var suites = []string{"bookworm", "trixie", "trixie-backports"}

// meta is the package that needs the newest kernel of a suite, of those without drivers
// for real machines.
const meta = "linux-image-cloud-amd64"

// kernel is one that was fetched and unpacked.
type kernel struct {
	release string // as uname has it
	suite   string
	files   string // what its packages hold
}

// fetchKernels fetches the newest kernel of each suite, those that are wanted.
func (c *cache) fetchKernels(wanted []string) (kernels []kernel, err error) {
	from, err := programs.HostArchive()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.path("apt", "root.sources"), []byte(from.Source(rootSuite)), 0o644); err != nil {
		return nil, err
	}
	for _, suite := range suites {
		a, err := c.openApt(suite, from)
		if err != nil {
			return nil, err
		}
		release, err := a.release()
		if err != nil {
			return nil, err
		}
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w string) bool { return strings.HasPrefix(release, w) }) {
			continue
		}
		k := kernel{release: release, suite: suite, files: c.path("kernels", release)}
		if !exists(k.files) {
			c.say("fetching Linux %s of %s", release, suite)
			if err := a.unpack(k); err != nil {
				return nil, err
			}
		}
		kernels = append(kernels, k)
	}
	if len(kernels) == 0 {
		return nil, fmt.Errorf("no kernel of %s is one of %s", strings.Join(suites, ", "), strings.Join(wanted, ", "))
	}
	return kernels, nil
}

// find returns where the packages have a file or a directory of the kernel, which older and
// newer ones have at different places.
func (k kernel) find(places ...string) (string, error) {
	for _, place := range places {
		if at := filepath.Join(k.files, strings.ReplaceAll(place, "RELEASE", k.release)); exists(at) {
			return at, nil
		}
	}
	return "", fmt.Errorf("the packages of Linux %s have none of %s", k.release, strings.Join(places, ", "))
}

func (k kernel) modules() (string, error) {
	return k.find("usr/lib/modules/RELEASE", "lib/modules/RELEASE")
}

func (k kernel) config() (string, error) {
	return k.find("boot/config-RELEASE", "usr/lib/modules/RELEASE/config")
}

func (k kernel) image() (string, error) {
	return k.find("boot/vmlinuz-RELEASE", "usr/lib/modules/RELEASE/vmlinuz")
}
