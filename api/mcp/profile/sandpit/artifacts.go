// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Bounds of the list of artifacts.
const (
	mostListed     = 50  // artifacts
	mostOfOne      = 20  // of one sandbox, so that none crowds out the others
	listedFrom     = 5   // sandboxes that run, those used last
	artifactDepth  = 4   // likewise
	artifactLooked = 200 // in each of them
	runsLooked     = 100 // runs, the newest
	runsAtOnce     = 5   // each may have thousands
	entriesLooked  = 20_000
)

// Artifact is a file that a sandbox has to show.
type Artifact struct {
	URI  string // by which it is read
	Name string
	Size int64
	At   time.Time // of its last change, or of the end of the run that left it
}

// Artifacts knows what sandboxes have to show; nil in [Options]: what the caller's runs
// left, and what is under /artifacts of the caller's sandboxes that run.
type Artifacts interface {
	// Recent returns at most so many, the newest first. It checks the caller's rights.
	Recent(ctx context.Context, c access.Caller, most int) ([]Artifact, error)
}

// recentArtifacts finds artifacts that runs left, which outlive their sandbox, and those
// of sandboxes that run.
type recentArtifacts struct{ service.Services }

// found is an artifact, and which file it is.
type found struct {
	Artifact
	of   sandbox.ID
	path string // inside
}

// Recent lists each file once: as it was when the last run ended that left it, or as it
// is now if it has changed since.
func (r recentArtifacts) Recent(ctx context.Context, c access.Caller, most int) ([]Artifact, error) {
	all, err := r.kept(ctx, c, most)
	if err != nil {
		return nil, err
	}
	live, err := r.live(ctx, c)
	if err != nil {
		return nil, err
	}
	all = append(all, live...)
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(a.URI, b.URI)) })
	type file struct {
		of   sandbox.ID
		path string
	}
	seen, ofOne := make(map[file]bool), make(map[sandbox.ID]int)
	var out []Artifact
	for _, f := range all {
		if len(out) == most {
			break
		}
		if which := (file{f.of, f.path}); !seen[which] && ofOne[f.of] < mostOfOne {
			seen[which] = true
			ofOne[f.of]++
			out = append(out, f.Artifact)
		}
	}
	return out, nil
}

// kept looks at the newest runs until there are enough files.
func (r recentArtifacts) kept(ctx context.Context, c access.Caller, most int) ([]found, error) {
	var all []found
	q := runs.ListRequest{Kept: true, Limit: runsAtOnce}
	different := make(map[string]bool)
	for looked, entries := 0, 0; looked < runsLooked && entries < entriesLooked && len(different) < most; looked += runsAtOnce {
		page, err := r.Runs.List(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for _, run := range page.Items {
			entries += len(run.Artifacts)
			if !run.DroppedAt.IsZero() { // its sandbox was deleted, and they are about to be
				continue
			}
			at := run.EndedAt
			if at.IsZero() { // they were copied out a moment ago
				at = run.StartedAt
			}
			for _, a := range run.Artifacts[:min(len(run.Artifacts), mostOfOne)] {
				p := sandbox.Artifacts + "/" + a.Path
				different[string(run.Sandbox)+p] = true
				all = append(all, found{
					Artifact{URI: keptURI(run, a.Path), Name: run.Identifier + ": " + toolset.PrintablePath(a.Path), Size: a.Size, At: at},
					run.Sandbox, p,
				})
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	return all, nil
}

// live looks into the sandboxes that were used last.
func (r recentArtifacts) live(ctx context.Context, c access.Caller) ([]found, error) {
	page, err := r.Sandboxes.List(ctx, c, engine.SandboxesRequest{States: []sandbox.State{sandbox.Running}, Limit: engine.MaxPage})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(page.Items, func(a, b *sandbox.Sandbox) int { return b.LastActivity.Compare(a.LastActivity) })
	now := time.Now()
	var all []found
	for _, s := range page.Items[:min(listedFrom, len(page.Items))] {
		_, matches, _, err := r.Files.SearchFiles(ctx, c, string(s.ID), sandbox.Artifacts, sandbox.SearchFilesOptions{Depth: artifactDepth, Limit: artifactLooked})
		if err != nil {
			continue // it has none, or went down meanwhile
		}
		for _, m := range matches {
			if m.File.Type != sandbox.RegularFile {
				continue
			}
			at := m.File.ModTime
			if at.After(now) { // whoever is inside sets it as they like
				at = now
			}
			all = append(all, found{
				Artifact{URI: toolset.FileURI(s.ID, m.File.Path), Name: s.Ref() + ": " + toolset.PrintablePath(m.Rel), Size: m.File.Size, At: at},
				s.ID, m.File.Path,
			})
		}
	}
	return all, nil
}

// paramRun is the part of a file's address that means the file as a run left it.
const paramRun = "run"

// keptURI is the resource that an artifact of a run is, by its path below the
// artifacts' directory.
func keptURI(r *sandbox.Run, p string) string {
	return toolset.FileURI(r.Sandbox, sandbox.Artifacts+"/"+p) + "?" + paramRun + "=" + r.ID
}

// runIn reads the query of a file's address: a run's id, or the latest.
func runIn(rawQuery, p string) (run string, ok bool) {
	q, err := url.ParseQuery(rawQuery)
	run = q.Get(paramRun)
	return run, err == nil && len(q) == 1 && len(q[paramRun]) == 1 &&
		(run == runs.Latest || sandbox.ValidRunID(run)) && strings.HasPrefix(p, sandbox.Artifacts+"/")
}

// openKept opens a file as a run left it; p is the path that it had inside.
func (sp *profile) openKept(ctx context.Context, c access.Caller, ref, run, p string) (io.ReadCloser, *sandbox.Run, sandbox.Artifact, error) {
	r, err := sp.Runs.ArtifactRun(ctx, c, ref, run)
	if err != nil {
		return nil, nil, sandbox.Artifact{}, err
	}
	f, a, err := sp.Runs.OpenArtifact(r, strings.TrimPrefix(p, sandbox.Artifacts+"/"))
	if err != nil {
		return nil, nil, a, err
	}
	return f, r, a, nil
}

// away reports whether a sandbox cannot show its files: it is gone, or down.
func (sp *profile) away(ctx context.Context, c access.Caller, ref string) bool {
	s, err := sp.Sandboxes.Get(ctx, c, ref)
	return fault.Is(err, fault.NotFound) || err == nil && s.State != sandbox.Running
}
