// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/images"
	"sandpit.dev/fault"
)

// Kept returns who administers images, or an error where nobody does.
func Kept(k service.Keeper) (service.Keeper, error) {
	if k == nil {
		return nil, fault.New(fault.Unsupported, "this server does not administer images")
	}
	return k, nil
}

type byImage struct {
	Name string `path:"name" doc:"the image's name, or another spelling of it"`
}

func (a *API) getImage(ctx context.Context, c *httpapi.Call, in *byImage) (v1.ImageDetails, error) {
	k, err := Kept(a.Keeper)
	if err != nil {
		return v1.ImageDetails{}, err
	}
	d, err := k.Inspect(ctx, c.Caller, in.Name)
	if err != nil {
		return v1.ImageDetails{}, err
	}
	out := v1.ImageDetails{
		Image: ImageOf(d.Status), Files: d.Image.Files, Absent: append([]string{}, d.Image.Absent...), Env: shape.MapOrEmpty(d.Image.Env),
		Builds: make([]v1.ImageBuild, 0, len(d.Builds)),
	}
	for i := range d.Builds {
		b := &d.Builds[i]
		out.DiskBytes += b.SizeBytes
		out.Builds = append(out.Builds, v1.ImageBuild{
			Digest: b.Digest, Current: b.Current, BuiltAt: shape.TimeOrNull(b.Created), SizeBytes: b.SizeBytes, Files: b.Files,
			Versions: shape.MapOrEmpty(b.Versions), Users: imageUsersOf(c.Caller, &b.Use),
		})
	}
	for _, l := range d.Layers {
		out.Layers = append(out.Layers, v1.ImageLayer{Digest: l.Digest, DiffID: l.DiffID, SizeBytes: l.Size, Images: l.Images})
	}
	return out, nil
}

// mostUsers is how many sandboxes, and how many snapshots, an answer names.
const mostUsers = 100

func imageUsersOf(c access.Caller, u *images.Use) v1.ImageUsers {
	out := v1.ImageUsers{
		SandboxCount: len(u.Sandboxes), Sandboxes: []v1.ImageUser{}, SnapshotCount: len(u.Snapshots), Snapshots: []v1.ImageUser{},
		Pools: map[string]int{},
	}
	for _, s := range u.Sandboxes {
		if images.Sees(c, s.Project) && len(out.Sandboxes) < mostUsers {
			out.Sandboxes = append(out.Sandboxes, v1.ImageUser{ID: string(s.ID), Key: s.Key, Project: s.Project, Status: string(s.State)})
		}
	}
	for _, s := range u.Snapshots {
		if images.Sees(c, s.Project) && len(out.Snapshots) < mostUsers {
			out.Snapshots = append(out.Snapshots, v1.ImageUser{ID: string(s.ID), Name: s.Name, Project: s.Project, Status: string(s.State)})
		}
	}
	for pool, n := range u.Pools {
		out.Pools[pool] = n
	}
	return out
}

type deleteImage struct {
	Name   string  `path:"name" doc:"the image's name, or another spelling of it"`
	Digest *string `query:"digest" doc:"of the one build to delete, whole or its first 12 digits; the default is all"`
	Force  *bool   `query:"force" doc:"delete the sandboxes and snapshots that use it, too, and end a build that goes on"`
	DryRun *bool   `query:"dry_run" doc:"delete nothing, and say what would be"`
}

func (a *API) deleteImage(ctx context.Context, c *httpapi.Call, in *deleteImage) (v1.ImageDeletion, error) {
	k, err := Kept(a.Keeper)
	if err != nil {
		return v1.ImageDeletion{}, err
	}
	d := images.Deletion{Name: in.Name, Digest: httpapi.Given(in.Digest), Force: in.Force != nil && *in.Force, DryRun: in.DryRun != nil && *in.DryRun}
	if in.Digest != nil && d.Digest == "" {
		return v1.ImageDeletion{}, fault.InvalidField("digest", "is empty; leave it out to delete all builds")
	}
	return Delete(ctx, c, k, d)
}

// Delete deletes builds of an image, and answers what that was.
func Delete(ctx context.Context, c *httpapi.Call, k service.Keeper, d images.Deletion) (v1.ImageDeletion, error) {
	ctx, done := c.Bound(ctx)
	defer done()
	got, err := k.Delete(ctx, c.Caller, d)
	if err != nil {
		return v1.ImageDeletion{}, httpapi.Cause(ctx, err)
	}
	out := v1.ImageDeletion{Name: got.Name, DryRun: d.DryRun, Digests: []string{}, FreedBytes: got.Bytes, Users: imageUsersOf(c.Caller, &got.Use)}
	for _, b := range got.Builds {
		out.Digests = append(out.Digests, b.Digest)
	}
	return out, nil
}

type pruneImages struct{ Body v1.PruneImages }

func (a *API) pruneImages(ctx context.Context, c *httpapi.Call, in *pruneImages) (v1.ImagesPruned, error) {
	k, err := Kept(a.Keeper)
	if err != nil {
		return v1.ImagesPruned{}, err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	got, err := k.Prune(ctx, c.Caller, images.Pruning{All: in.Body.All, Cache: in.Body.Cache, DryRun: in.Body.DryRun})
	if err != nil {
		return v1.ImagesPruned{}, httpapi.Cause(ctx, err)
	}
	out := v1.ImagesPruned{DryRun: in.Body.DryRun, Builds: []v1.PrunedBuild{}, CacheBytes: got.CacheBytes, FreedBytes: got.Bytes, KeptBytes: got.Kept}
	for _, b := range got.Builds {
		out.Builds = append(out.Builds, v1.PrunedBuild{Name: b.Name, Digest: b.Digest, SizeBytes: b.SizeBytes})
	}
	return out, nil
}

type imageLog struct {
	Name   string `path:"name" doc:"the image's name, or another spelling of it"`
	Follow *bool  `query:"follow" doc:"wait for more while a build goes on, until it ends"`
}

// imageLog sends the output of an image's last build.
func (a *API) imageLog(ctx context.Context, c *httpapi.Call, in *imageLog) error {
	k, err := Kept(a.Keeper)
	if err != nil {
		return err
	}
	return c.AnswerLog(ctx, func(ctx context.Context, w io.Writer, flush func() error) error {
		return k.Log(ctx, c.Caller, in.Name, w, in.Follow != nil && *in.Follow, flush)
	})
}
