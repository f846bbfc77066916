// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// The users inside whom a caller can act as.
const (
	UserSandbox = "sandbox" // the ordinary one
	UserRoot    = "root"
)

// RootHome is the home of a sandbox's root, and where its commands start.
const RootHome = "/root"

// Writable lists the directories that a sandbox's user writes below, beside mounted volumes.
func Writable() []string { return []string{Workspace, Artifacts, Home, "/tmp", "/var/tmp"} }

// sharedPlaces are directories below which a user may decide what a path leads to: /home,
// whose homes are the users', the kernel's and the runtime's, and the image's directory of locks
// by its three names.
var sharedPlaces = [...]string{"/home", "/proc", "/dev", "/run/lock", "/var/run/lock", "/var/lock"}

// UserDecides reports whether what is at a path inside, as it is written, may be decided by
// the sandbox's user, whose account is own: it is relative, or below a directory that the user can write.
func UserDecides(p string, mounts []Mount, own Account) bool {
	if !path.IsAbs(p) || strings.Contains(p, "/..") {
		return true
	}
	p = path.Clean(p)
	for _, m := range mounts {
		if within(p, m.Path) {
			return true
		}
	}
	for _, dir := range sharedPlaces {
		if within(p, dir) {
			return true
		}
	}
	for _, dir := range append(Writable(), own.Full().Home, own.Full().Workdir) {
		if within(p, dir) {
			return true
		}
	}
	return false
}

// ForRoot returns the variables that commands of the sandbox's root get of env: without the
// directories of PATH, and without a HOME, about which the user decides. It does not change env.
func ForRoot(env map[string]string, mounts []Mount, own Account) map[string]string {
	out := make(map[string]string, len(env))
	for name, value := range env {
		switch name {
		case "PATH":
			kept := slices.DeleteFunc(strings.Split(value, ":"), func(dir string) bool { return UserDecides(dir, mounts, own) })
			if len(kept) == 0 {
				continue // the agent's own
			}
			value = strings.Join(kept, ":")
		case "HOME":
			if UserDecides(value, mounts, own) {
				continue
			}
		}
		out[name] = value
	}
	return out
}
