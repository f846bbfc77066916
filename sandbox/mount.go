// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"sandpit.dev/fault"
)

// maxMountPath is the longest path of a mount, in bytes.
const maxMountPath = 1024

// kernelPlaces are directories that belong to the kernel and the runtime. Nothing is mounted on
// them or below them.
var kernelPlaces = [...]string{"/proc", "/sys", "/dev"}

// programPlaces are directories without which no command would start. Nothing is
// mounted on them.
var programPlaces = [...]string{"/", "/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr", "/usr/bin", "/usr/lib"}

// CheckMounts refuses invalid mounts, whatever is on the disk: there are at most MaxMounts, each
// at an absolute, clean path that is not the kernel's, and none inside another. The error is
// Invalid and names the field of the first that is wrong.
func CheckMounts(mounts []Mount) error {
	if len(mounts) > MaxMounts {
		return fault.InvalidField("mounts", "has %d volumes; a sandbox mounts at most %d", len(mounts), MaxMounts)
	}
	for n, m := range mounts {
		field := "mounts[" + strconv.Itoa(n) + "]"
		if !ValidID(string(m.Volume)) {
			return fault.InvalidField(field+".volume", "%q is not a valid volume id", Clip(string(m.Volume), 40))
		}
		if err := checkMountPath(field+".path", m.Path); err != nil {
			return err
		}
		if m.Sub != "" && (!fs.ValidPath(m.Sub) || m.Sub == "." || len(m.Sub) > maxMountPath || strings.ContainsRune(m.Sub, 0)) {
			return fault.InvalidField(field+".sub", "%q is not a valid path of a directory in the volume: it is relative, without \"..\", and has at most %d bytes", Clip(m.Sub, 80), maxMountPath)
		}
		for _, other := range mounts[:n] {
			if within(m.Path, other.Path) || within(other.Path, m.Path) {
				return fault.InvalidField(field+".path", "%q and %q are one inside the other", Clip(m.Path, 80), Clip(other.Path, 80)).
					WithRemedy("mount the volumes beside each other")
			}
		}
	}
	return nil
}

func checkMountPath(field, p string) error {
	switch {
	case len(p) > maxMountPath:
		return fault.InvalidField(field, "has %d bytes, over the bound of %d", len(p), maxMountPath)
	case !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsRune(p, 0) || !fs.ValidPath("x"+p) && p != "/":
		return fault.InvalidField(field, "%q is no absolute path without \"..\" and without a slash at its end", Clip(p, 80))
	}
	for _, place := range programPlaces {
		if p == place {
			return fault.InvalidField(field, "a volume on %q would hide the sandbox's programs", p).
				WithRemedy("choose a directory of its own, for instance /mnt/data")
		}
	}
	for _, place := range kernelPlaces {
		if within(p, place) {
			return fault.InvalidField(field, "%q is in %s, which is the kernel's", Clip(p, 80), place).
				WithRemedy("choose a directory of its own, for instance /mnt/data")
		}
	}
	return nil
}

// within reports whether p is dir or below it; both are clean.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
