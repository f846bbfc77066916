// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// The sandbox's user; every image has it.
const (
	sandboxUser = "sandbox"
	sandboxID   = 1000
	sandboxHome = "home/sandbox"
)

// configuredFiles are files of the root that must not be the build host's.
var configuredFiles = map[string]string{
	"etc/hostname":    "sandbox\n",
	"etc/hosts":       "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
	"etc/resolv.conf": "",
	"etc/machine-id":  "",
	// pip works without flags, also after an upgrade of Python brought
	// EXTERNALLY-MANAGED back, and says nothing that its user cannot change.
	"etc/pip.conf": "[global]\nbreak-system-packages = true\ndisable-pip-version-check = true\nroot-user-action = ignore\n",
	// npm install -g works without root, beside what pip installs for the user.
	sandboxHome + "/.npmrc": "prefix=/home/sandbox/.local\nupdate-notifier=false\n",
}

// configure makes the root what sandboxes expect: the user, the directories, the
// names, and nothing of the host that built it.
func configure(_ context.Context, w *work) error {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := settle(root); err != nil {
		return err
	}
	return strip(root)
}

// settle makes the user, the directories and the names.
func settle(root *os.Root) error {
	if err := addUser(root); err != nil {
		return err
	}
	for dir, mode := range map[string]fs.FileMode{"workspace": 0o755, "artifacts": 0o755, sandboxHome: 0o755, sandboxHome + "/.local": 0o755, sandboxHome + "/.local/bin": 0o755} {
		if err := root.MkdirAll(dir, mode); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := root.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	for name, content := range configuredFiles {
		if err := replaceFile(root, name, content, 0o644); err != nil {
			return err
		}
	}
	if err := copySkeleton(root); err != nil {
		return err
	}
	for _, dir := range []string{"workspace", "artifacts", sandboxHome} {
		if err := ownTree(root, dir); err != nil {
			return err
		}
	}
	return nil
}

// strip empties what a running system fills again. The directories stay, with
// their modes: apt and dpkg expect them.
func strip(root *os.Root) error {
	for _, dir := range []string{"dev", "run", "tmp", "var/tmp", "var/log", "var/lib/apt/lists", "var/cache/apt", "var/cache/debconf"} {
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch dir + "/" + e.Name() {
			case "run/lock":
				continue
			case "var/cache/apt/archives", "var/log/apt":
				if err := emptyFiles(root, dir+"/"+e.Name()); err != nil {
					return err
				}
				continue
			}
			if err := root.RemoveAll(dir + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"etc/apt/apt.conf.d/99mmdebstrap", "etc/hostname-", "etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "var/lib/dpkg/status-old", "var/lib/dpkg/available"} {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

func emptyFiles(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			if err := root.Remove(dir + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// addUser adds the sandbox's user and group where they are missing.
func addUser(root *os.Root) error {
	for _, f := range []struct {
		name, line string
		mode       fs.FileMode
	}{
		{"etc/passwd", fmt.Sprintf("%s:x:%d:%d::/%s:/bin/bash", sandboxUser, sandboxID, sandboxID, sandboxHome), 0o644},
		{"etc/group", fmt.Sprintf("%s:x:%d:", sandboxUser, sandboxID), 0o644},
		// "*" is a password that nothing matches.
		{"etc/shadow", sandboxUser + ":*:19000:0:99999:7:::", 0o640},
		{"etc/gshadow", sandboxUser + ":*::", 0o640},
	} {
		data, err := root.ReadFile(f.name)
		if err != nil {
			return err
		}
		if strings.Contains("\n"+string(data), "\n"+sandboxUser+":") {
			continue
		}
		// In place: the file keeps its owner and its mode.
		if err := root.WriteFile(f.name, append(data, f.line+"\n"...), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// copySkeleton copies to the user the shell's usual start files.
func copySkeleton(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), "etc/skel")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := root.ReadFile("etc/skel/" + e.Name())
		if err != nil {
			return err
		}
		if err := replaceFile(root, sandboxHome+"/"+e.Name(), string(data), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a new file, never through a link that is there.
func replaceFile(root *os.Root, name, content string, mode fs.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	return root.WriteFile(name, []byte(content), mode)
}

// ownTree makes the sandbox's user the owner of a tree.
func ownTree(root *os.Root, dir string) error {
	return fs.WalkDir(root.FS(), dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(name, sandboxID, sandboxID)
	})
}
