// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"net/http"
	"reflect"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
)

// API serves the operations on images. It is safe for concurrent use.
type API struct {
	Images      service.Images      // required
	Keeper      service.Keeper      // nil: nobody administers images
	Dockerfiles service.Dockerfiles // nil: none is built
	MaxFile     int64               // the most bytes of one raw upload
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("listImages", "GET /images", "List what sandboxes can run on.", http.StatusOK, a.listImages),
		httpapi.Op("buildImage", "POST /images/{name}/build", "Build an image. The build goes on whether one waits or not.", http.StatusOK, a.buildImage).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.Image](), "It goes on; GET /images shows how far it is.").
			Extend(idempotency.Keyless("the second joins the build")),
		httpapi.Op("getImage", "GET /images/{name}", "Get all that is known of an image: its builds on disk, also older ones, and who uses each.", http.StatusOK, a.getImage),
		httpapi.Raw("imageLog", "GET /images/{name}/log", "Get the output of the last build of an image of the catalogue, or of the one that goes on, as text. Needs the scope admin.", http.StatusOK, a.imageLog).
			Media("", "text/plain"),
		httpapi.Op("deleteImage", "DELETE /images/{name}", "Delete the builds of an image, or the one with a digest; one that was pulled or imported goes with all its names. While somebody uses one: 409, with who does. With force the sandboxes and snapshots that do are deleted with it, and a build that goes on ends; dry_run says what that is. Needs the scope server:admin.", http.StatusOK, a.deleteImage),
		httpapi.Op("pruneImages", "POST /images/prune", "Remove the builds of images that nobody uses and new sandboxes do not get: of pulled and imported ones those without a name, or all. Needs the scope server:admin.", http.StatusOK, a.pruneImages).
			Example(v1.PruneImages{DryRun: true}).
			Extend(idempotency.Keyless("the second finds nothing")),
		httpapi.Op("importImage", "POST /images/{name}/import", "Import an entry of the catalogue: another name of buildImage, for those who know it by that.", http.StatusOK, a.buildImage).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.Image](), "It goes on; GET /images shows how far it is.").
			Extend(idempotency.Keyless("the second joins the build")),
		httpapi.Op("pullImage", "POST /images/pull", "Bring an image from its registry. The pull goes on whether one waits or not.", http.StatusOK, a.pullImage).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.Image](), "It goes on; GET /images shows how far it is.").
			Example(v1.PullImage{Reference: "debian:12-slim"}).
			Extend(idempotency.Keyless("the second joins the pull")),
		httpapi.Op("importImages", "POST /images/import", "Make images of an archive, which is the raw body: what docker save wrote, or a tar of an OCI layout, compressed or not. Its digests are verified; one that is here already costs its transport.", http.StatusCreated, a.importImages).
			Media(v1.ImageType, "").
			Extend(idempotency.Keyless("the second finds the image there")),
		httpapi.Raw("saveImage", "GET /images/{name}/archive", "Get an image as an OCI archive, as it is read: a tar of an image layout with one layer. Of one image it is the same bytes on every machine; Sandpit-Image-Digest is its digest. It needs the scope server:admin. One that breaks off is shorter than its length.", http.StatusOK, a.saveImage).
			Media("", v1.ImageType),
		httpapi.Raw("pushImage", "POST /images/{name}/push", "Put an image into a registry: the same bytes as saveImage has, so that it has one digest. Server-sent events: progress (PushStep), then pushed (PushedImage) or error (Problem) at last. It ends when its caller leaves. For the server's own administrator's token alone, since the credentials are the operator's.", http.StatusOK, a.pushImage).
			Media("", "text/event-stream").
			Events(map[string]reflect.Type{v1.PushProgress: reflect.TypeFor[v1.PushStep](), v1.PushDone: reflect.TypeFor[v1.PushedImage]()}).
			Example(v1.PushImage{Reference: "registry.example/team/app:1"}).
			Extend(idempotency.Keyless("the second finds all there")),
		httpapi.Raw("buildDockerfile", "POST /images/build", "Make an image of a Dockerfile. The raw body is a tar archive, compressed by gzip or not, of the directory that COPY and ADD take from, with the Dockerfile. Server-sent events: step (BuildStep) and output (Output) as it goes on, then image (Image) or error (Problem) at last. It ends when its caller leaves; a build after it goes on behind the last step that was done.", http.StatusOK, a.buildDockerfile).
			Media(v1.ContextType, "text/event-stream").
			Events(map[string]reflect.Type{v1.BuildStarted: reflect.TypeFor[v1.BuildStep](), v1.BuildOutput: reflect.TypeFor[v1.Output](), v1.BuildMade: reflect.TypeFor[v1.Image]()}).
			Extend(idempotency.Keyless("the second finds all steps done")),
	}
}
