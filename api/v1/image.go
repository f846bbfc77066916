// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Image is one entry of the catalogue and its state on this server.
type Image struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Aliases     []string          `json:"aliases" jsonschema:"other names that mean it"`
	AliasNotes  map[string]string `json:"alias_notes,omitempty" jsonschema:"of those of them that say something else than what is inside: what is there"`
	Default     bool              `json:"default" jsonschema:"whether a sandbox that names no image gets it"`
	Allowed     bool              `json:"allowed" jsonschema:"whether the operator lets new sandboxes have it"`
	Status      string            `json:"status" jsonschema:"missing, building, ready or failed"`
	Digest      string            `json:"digest,omitempty"`
	Versions    map[string]string `json:"versions" jsonschema:"what is really inside"`
	SizeBytes   int64             `json:"size_bytes"`
	Sandboxes   *int              `json:"sandboxes,omitempty" jsonschema:"in the list: how many have it, in any of its builds and of all projects"`
	BuiltAt     *time.Time        `json:"built_at"`
	Phase       string            `json:"phase,omitempty" jsonschema:"what a build is doing"`
	Text        string            `json:"text,omitempty" jsonschema:"the same in a line for people"`
	Progress    *float64          `json:"progress,omitempty" jsonschema:"how far a build is, 0 to 1"`
	Pulling     []PulledLayer     `json:"pulling,omitempty" jsonschema:"layers of an image that is being pulled, the lowest first, as far as they are known"`
	Error       string            `json:"error,omitempty" jsonschema:"why the last build failed"`
	Output      []string          `json:"output,omitempty" jsonschema:"the last lines of the step that failed"`
	Start       []string          `json:"start,omitempty" jsonschema:"what its sandboxes start, at each start, unless a template says something else"`
	Config      *ImageConfig      `json:"config,omitempty" jsonschema:"what the maker of an imported image wrote about it"`
}

// PulledLayer is how far a layer is of an image that is being pulled.
type PulledLayer struct {
	Digest    string `json:"digest" jsonschema:"as its manifest has it; an Engine shortens it"`
	DoneBytes int64  `json:"done_bytes" jsonschema:"that are here, as transported"`
	SizeBytes int64  `json:"size_bytes" jsonschema:"as transported; 0 while it is not known"`
	Status    string `json:"status" jsonschema:"waiting, pulling, unpacking (its bytes are here) or ready"`
}

// ImageList is the catalogue.
type ImageList struct {
	Items []Image `json:"items"`
}

// BuildImage says how an image is to be built.
type BuildImage struct {
	Rebuild bool `json:"rebuild,omitempty" jsonschema:"build it anew also where there is a current build; that one stays in use meanwhile"`
}

// ImageDetails is all that is known of an image.
type ImageDetails struct {
	Image
	Files     int64             `json:"files" jsonschema:"of the current build: files and directories"`
	Absent    []string          `json:"absent" jsonschema:"what people look for, and it lacks"`
	Env       map[string]string `json:"env" jsonschema:"variables of every command"`
	DiskBytes int64             `json:"disk_bytes" jsonschema:"what all builds take on disk"`
	Builds    []ImageBuild      `json:"builds" jsonschema:"what is on disk, newest first"`
	Layers    []ImageLayer      `json:"layers,omitempty" jsonschema:"of an image that others made, the lowest first"`
}

// ImageLayer is a layer of an image that others made. It is on disk once for all images that have it.
type ImageLayer struct {
	Digest    string `json:"digest,omitempty" jsonschema:"as it was transported; an archive of docker save has none"`
	DiffID    string `json:"diff_id" jsonschema:"of its files, as a tar archive"`
	SizeBytes int64  `json:"size_bytes" jsonschema:"as it was transported"`
	Images    int    `json:"images" jsonschema:"how many other images here have it"`
}

// ImageBuild is one build of an image on disk. It never changes.
type ImageBuild struct {
	Digest    string            `json:"digest"`
	Current   bool              `json:"current" jsonschema:"whether new sandboxes get it"`
	BuiltAt   *time.Time        `json:"built_at"`
	SizeBytes int64             `json:"size_bytes"`
	Files     int64             `json:"files"`
	Versions  map[string]string `json:"versions"`
	Users     ImageUsers        `json:"users"`
}

// ImageUsers is who uses builds of an image.
type ImageUsers struct {
	SandboxCount  int            `json:"sandbox_count" jsonschema:"of all projects"`
	Sandboxes     []ImageUser    `json:"sandboxes" jsonschema:"those that the caller sees, at most 100"`
	SnapshotCount int            `json:"snapshot_count" jsonschema:"of all projects"`
	Snapshots     []ImageUser    `json:"snapshots" jsonschema:"those that the caller sees, at most 100"`
	Pools         map[string]int `json:"pools" jsonschema:"sandboxes that nobody has asked for yet, by pool"`
}

// ImageUser is a sandbox or a snapshot that uses an image.
type ImageUser struct {
	ID      string `json:"id"`
	Key     string `json:"key,omitempty" jsonschema:"of a sandbox"`
	Name    string `json:"name,omitempty" jsonschema:"of a snapshot"`
	Project string `json:"project"`
	Status  string `json:"status"`
}

// ImageDeletion is what was deleted of an image, or would be.
type ImageDeletion struct {
	Name       string     `json:"name"`
	DryRun     bool       `json:"dry_run" jsonschema:"nothing was deleted: this is what would be"`
	Digests    []string   `json:"digests" jsonschema:"of the builds"`
	FreedBytes int64      `json:"freed_bytes" jsonschema:"of an image that others made, not those of layers that other images have"`
	Users      ImageUsers `json:"users" jsonschema:"what was deleted with them; for a dry run what uses them, and force deletes"`
}

// PruneImages asks to remove the unused builds of images, and more.
type PruneImages struct {
	All    bool `json:"all,omitempty" jsonschema:"also images that were pulled or imported and have a name; else only those whose names mean others by now"`
	Cache  bool `json:"cache,omitempty" jsonschema:"also what builds downloaded, which the next one downloads again"`
	DryRun bool `json:"dry_run,omitempty" jsonschema:"only say what would be removed"`
}

// ImagesPruned is what was removed, or would be.
type ImagesPruned struct {
	DryRun     bool          `json:"dry_run" jsonschema:"nothing was removed: this is what would be"`
	Builds     []PrunedBuild `json:"builds"`
	CacheBytes int64         `json:"cache_bytes"`
	FreedBytes int64         `json:"freed_bytes" jsonschema:"of the builds and the cache"`
	KeptBytes  int64         `json:"kept_bytes" jsonschema:"of the builds that stay"`
}

// PrunedBuild is an unused build that was removed.
type PrunedBuild struct {
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	SizeBytes int64  `json:"size_bytes"`
}
