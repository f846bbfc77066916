// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/api/filelink"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// fileTemplate is the address of any file of a sandbox.
const fileTemplate = "sandbox://{id}/{+path}"

// Bounds of resources.
const (
	maxResource    = 1 << 20 // bytes of one that is read; of more there is a link
	mostListed     = 50      // artifacts that are listed
	listedFrom     = 5       // sandboxes, those used last
	artifactDepth  = 4
	artifactLooked = 200 // in each sandbox
)

// Artifact is a file that a sandbox has to show.
type Artifact struct {
	URI  string // by which it is read
	Name string
	Size int64
	At   time.Time // of its last change
}

// Artifacts knows what sandboxes have to show; nil in [Options]: what is under
// /artifacts of the caller's sandboxes that run.
type Artifacts interface {
	// Recent gives at most so many, the newest first. It checks the caller's rights.
	Recent(ctx context.Context, c access.Caller, most int) ([]Artifact, error)
}

// running finds artifacts in sandboxes that run.
type running struct{ engine Engine }

// Recent looks into the sandboxes that were used last.
func (r running) Recent(ctx context.Context, c access.Caller, most int) ([]Artifact, error) {
	page, err := r.engine.List(ctx, c, store.SandboxQuery{States: []sandbox.State{sandbox.Running}, Limit: store.MaxPage})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(page.Items, func(a, b *sandbox.Sandbox) int { return b.LastActivity.Compare(a.LastActivity) })
	var out []Artifact
	for _, s := range page.Items[:min(listedFrom, len(page.Items))] {
		_, found, _, err := r.engine.SearchFiles(ctx, c, string(s.ID), sandbox.Artifacts, agent.SearchOptions{Depth: artifactDepth, Limit: artifactLooked})
		if err != nil {
			continue // it has none, or went down meanwhile
		}
		for _, m := range found {
			if m.File.Type == agent.File {
				out = append(out, Artifact{
					URI: fileURI(s.ID, m.File.Path), Name: s.Ref() + ": " + printablePath(m.Rel), Size: m.File.Size, At: m.File.ModTime,
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b Artifact) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(a.URI, b.URI)) })
	return out[:min(most, len(out))], nil
}

// serveResources adds the files of sandboxes, and the list of recent artifacts.
func (h *Handler) serveResources(s *mcp.Server) {
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: fileTemplate, Name: "file", Title: "A file of a sandbox",
		Description: "Any file of a sandbox by the sandbox's id or name and the file's path, up to 1 MiB.",
	}, h.readResource)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			list, ok := res.(*mcp.ListResourcesResult)
			if !ok || err != nil || list.NextCursor != "" {
				return res, err
			}
			recent, err := h.artifacts.Recent(ctx, callerOf(req), mostListed)
			if err != nil {
				h.log.WarnContext(ctx, "recent artifacts cannot be listed", "error", err)
				return res, nil
			}
			out := *list // the SDK's own stays as it is
			out.Resources = slices.Clone(list.Resources)
			for _, a := range recent {
				out.Resources = append(out.Resources, &mcp.Resource{
					URI: a.URI, Name: a.Name, MIMEType: mediaOf(a.URI), Size: a.Size,
					Annotations: &mcp.Annotations{LastModified: timeText(a.At)},
				})
			}
			return &out, nil
		}
	})
}

// fileOf takes the address of a file apart.
func fileOf(uri string) (ref, path string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "sandbox" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", "", false
	}
	ref, err = url.PathUnescape(u.Host)
	return ref, u.Path, err == nil && ref != "" && len(u.Path) > 1
}

// readResource reads a file, for clients and not for models: what is wrong with it
// is an error of the protocol, with the words of the tools.
func (h *Handler) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	ref, path, ok := fileOf(uri)
	if !ok {
		return nil, noResource(uri, "it is no address of the form "+fileTemplate)
	}
	caller := callerOf(req)
	info, body, err := h.engine.ReadFile(ctx, caller, ref, path, agent.ReadOptions{})
	if err != nil {
		return nil, resourceError(uri, err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxResource+1))
	if err != nil {
		return nil, resourceError(uri, err)
	}
	if len(data) > maxResource {
		return nil, noResource(uri, fmt.Sprintf("the file has %d bytes, and resources have at most %d; %s", max(info.Size, int64(len(data))), maxResource, h.insteadOf(ctx, req, ref, &info)))
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: mediaOf(path)}
	if isBinary(data, false) {
		if c.MIMEType == "application/octet-stream" {
			c.MIMEType = http.DetectContentType(data)
		}
		c.Blob = data
	} else {
		c.Text = string(data)
		if c.MIMEType == "application/octet-stream" {
			c.MIMEType = "text/plain"
		}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// insteadOf is a way to a file that is too large for a resource.
func (h *Handler) insteadOf(ctx context.Context, req *mcp.ReadResourceRequest, ref string, info *agent.FileInfo) string {
	c := &call{engine: h.engine, caller: callerOf(req), files: h.files}
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		c.address, _ = req.Extra.TokenInfo.Extra[extraRequest].(*http.Request)
	}
	if s, err := h.engine.Get(ctx, c.caller, ref); err == nil {
		if address, until := c.fileURL(s, info.Path, filelink.DefaultLife); address != "" {
			return "download it until " + timeText(until) + ": " + address
		}
	}
	return "use the tool read_file, which reads it in parts"
}

// noResource is the protocol's error for what is not there, with a reason.
func noResource(uri, why string) error {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // text marshals
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no resource " + quote(clip(uri)) + ": " + why, Data: data}
}

// resourceError says why a file cannot be read.
func resourceError(uri string, err error) error {
	e := fault.As(err)
	if e.Code == fault.Internal || errors.Is(err, context.Canceled) {
		return err
	}
	return noResource(uri, e.Message)
}
