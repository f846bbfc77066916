// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Attributes of a file are its extended attributes of the space that users have, without its name.
const userSpace = "user."

// What file systems that lie above others keep there for themselves.
const overlaySpace = "overlay."

// mostXattrNames is more than what a file system takes of names.
const mostXattrNames = 64 << 10

// checkAttributes checks what is to be set, beside what is there already.
func checkAttributes(field string, set map[string]string) error {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if err := checkAttributeKey(field, key); err != nil {
			return err
		}
		value := set[key]
		if !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			return fault.InvalidField(field, "the value of %q is not a text in UTF-8 without NUL bytes", message.Clip(key, 80))
		}
		size += len(key) + len(value)
	}
	return checkAttributesSize(field, size)
}

func checkAttributesSize(field string, size int) error {
	if size > wire.MaxAttributes {
		return fault.InvalidField(field, "keys and values have %d bytes together, more than %d", size, wire.MaxAttributes).
			WithRemedy("keep what is longer in a file beside it")
	}
	return nil
}

func checkAttributeKey(field, key string) error {
	switch {
	case key == "" || len(key) > wire.MaxAttributeKey:
		return fault.InvalidField(field, "the key %q has %d bytes; one has 1 to %d", message.Clip(key, 80), len(key), wire.MaxAttributeKey)
	case !isPrintableKey(key):
		return fault.InvalidField(field, "the key %q is not printable text without = and spaces", message.Clip(key, 80))
	case strings.HasPrefix(key, overlaySpace):
		return fault.InvalidField(field, "keys that begin with %q are the file system's own, as %q does", overlaySpace, message.Clip(key, 80))
	}
	return nil
}

func isPrintableKey(key string) bool {
	for _, r := range key {
		if r <= ' ' || r == 0x7f || r == '=' || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// attributesAt reads the attributes of a file or directory, as far as the user may; nil: it has none. It
// runs within Do.
func attributesAt(dir int, name string) map[string]string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	return attributesOf(fd)
}

// attributesOf reads the attributes of an open file: those that are text, and as many as a file may have.
func attributesOf(fd int) map[string]string {
	var few [1 << 10]byte
	n, err := unix.Flistxattr(fd, few[:])
	list := few[:max(0, n)]
	if errors.Is(err, unix.ERANGE) {
		list = make([]byte, mostXattrNames)
		n, err = unix.Flistxattr(fd, list)
		list = list[:max(0, n)]
	}
	if err != nil || n <= 0 {
		return nil
	}
	var out map[string]string
	size := 0
	for full := range strings.SplitSeq(string(list), "\x00") {
		key, ok := strings.CutPrefix(full, userSpace)
		if !ok || checkAttributeKey("", key) != nil {
			continue
		}
		var value [wire.MaxAttributes]byte
		n, err := unix.Fgetxattr(fd, full, value[:])
		if err != nil || !utf8.Valid(value[:n]) || strings.IndexByte(string(value[:n]), 0) >= 0 {
			continue // no text, or longer
		}
		if size += len(key) + n; size > wire.MaxAttributes {
			break
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[key] = string(value[:n])
	}
	return out
}

// setAttributes gives an open file attributes. It runs within Do.
func setAttributes(fd int, set map[string]string) error {
	for key, value := range set {
		if err := attributeError(unix.Fsetxattr(fd, userSpace+key, []byte(value), 0)); err != nil {
			return err
		}
	}
	return nil
}

func attributeError(err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fault.New(fault.Unsupported, "the file system that the file is on keeps no attributes").
			WithRemedy("use a file below /workspace")
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.E2BIG):
		return fault.New(fault.TooLarge, "the file system that the file is on keeps no attributes of that size").
			WithRemedy("use shorter ones")
	}
	return err
}
