// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"sandpit.dev/image/entry"
)

// recipe says how an entry is built. Its stages run in order in one work
// directory; each may be run again after a kill in its middle.
type recipe struct {
	Entry
	// Contents is everything that decides what comes out: package names,
	// options, and a revision for what only code says. It is hashed.
	Contents any
	Env      map[string]string
	Stages   []stage
	// Inspect reads from the finished root what is really inside.
	Inspect func(ctx context.Context, w *work) (contents, error)
	// made is the entry of what is made in a sandbox; it has no Stages and no Inspect. Nil: it is made here.
	made *entry.Entry
}

// contents is what a root was found to have: tools with their versions, and
// which of those that people look for it lacks.
type contents struct {
	Versions map[string]string
	Absent   []string
}

// stage is one step of a build.
type stage struct {
	Name string
	// Weight is the stage's share of the time, relative to the others.
	Weight float64
	// Run does it. It begins by removing what an earlier, killed run of itself
	// left, and returns only when nothing that it started is still running.
	Run func(ctx context.Context, w *work) error
}

// hash identifies the recipe: an image built by another one is not current.
func (r recipe) hash() string {
	data, err := json.Marshal(struct {
		Name     string
		Contents any
		Env      map[string]string
	}{r.Name, r.Contents, r.Env})
	if err != nil {
		panic("image: the contents of recipe " + r.Name + " cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// digest names the image that the recipe makes with these resolved versions.
func digest(recipeHash string, resolved map[string]string) string {
	h := sha256.New()
	h.Write([]byte(recipeHash + "\n"))
	for _, k := range slices.Sorted(maps.Keys(resolved)) {
		// Neither side has a line end: keys are ours, values are package versions.
		h.Write([]byte(k + "=" + resolved[k] + "\n"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
