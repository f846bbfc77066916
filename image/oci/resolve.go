// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxLinks bounds the symbolic links on the way to a name, as the kernel does.
const maxLinks = 40

// Bounds of a name in an archive.
const (
	maxNameBytes = 4096
	maxPartBytes = 255
	maxDepth     = 128
)

// errLinks is a name with too many symbolic links on its way.
var errLinks = errors.New("too many symbolic links")

// cleanName returns an archive's name as a path below the root, "." for the root. It refuses what leads out of it,
// and what the kernel could not open.
func cleanName(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", refused("the name %s in a layer is absolute", shown(name))
	}
	if len(name) > maxNameBytes || strings.ContainsRune(name, 0) {
		return "", refused("the name %s in a layer has %d bytes or a zero byte; it may have %d without", shown(name), len(name), maxNameBytes)
	}
	clean := path.Clean(name)
	parts := strings.Split(clean, "/")
	if len(parts) > maxDepth {
		return "", refused("the name %s in a layer is %d directories deep, more than %d", shown(name), len(parts), maxDepth)
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", refused("the name %s in a layer has .. in it", shown(name))
	}
	for _, p := range parts {
		if len(p) > maxPartBytes {
			return "", refused("the name %s in a layer has a part of more than %d bytes", shown(name), maxPartBytes)
		}
	}
	return clean, nil
}

// resolve returns the path below root, free of symbolic links, that dir means to who is confined to
// it: an absolute link begins at root, and .. ends there. missing is asked for what does not exist: it
// makes it, or returns the error of resolve.
func resolve(root *os.Root, dir string, missing func(at string) error) (string, error) {
	if dir == "." {
		return dir, nil
	}
	at, links := ".", 0
	todo := strings.Split(dir, "/")
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		info, err := root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if err := missing(next); err != nil {
				return "", err
			}
			at = next
			continue
		}
		if err != nil {
			return "", err
		}
		switch {
		case info.IsDir():
			at = next
		case info.Mode().Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return "", &fs.PathError{Op: "resolve", Path: dir, Err: errLinks}
			}
			target, err := root.Readlink(next)
			if err != nil {
				return "", err
			}
			if strings.HasPrefix(target, "/") {
				at = "."
			}
			todo = append(strings.Split(target, "/"), todo...)
			if len(todo) > maxNameBytes {
				return "", &fs.PathError{Op: "resolve", Path: dir, Err: errLinks}
			}
		default:
			return "", &fs.PathError{Op: "resolve", Path: next, Err: errors.New("not a directory")}
		}
	}
	return at, nil
}
