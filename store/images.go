// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package store

// KnownImages are the images whose last event was not that they are gone: what is on disk of images is no record.
type KnownImages interface {
	// List returns all, by name.
	List() ([]*KnownImage, error)
	// Put adds an image, or changes the one of its name.
	Put(i *KnownImage) error
	// Delete removes an image; one that is not there is none to remove.
	Delete(name string) error
}

// KnownImage is an image as its last event told of it.
type KnownImage struct {
	Name   string
	Digest string
	Object []byte // JSON
}
