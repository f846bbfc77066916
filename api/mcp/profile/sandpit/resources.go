// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
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

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/batch"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	apiruns "sandpit.dev/api/runs"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// fileTemplate is the address of any file of a sandbox.
const fileTemplate = "sandbox://{id}/{+path}"

// maxResource is the most bytes of a resource that is read; of more there is a link.
const maxResource = 1 << 20

// serveResources adds the files of sandboxes, and the list of recent artifacts.
func (sp *profile) serveResources(s *mcp.Server) {
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: fileTemplate, Name: "file", Title: "A file of a sandbox",
		Description: "Any file of a sandbox by the sandbox's id or name and the file's path, up to 1 MiB. With ?run= and a run's id, or latest, a file under /artifacts as that run left it, also when the sandbox is down or its time to live has passed.",
	}, sp.readResource)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			list, ok := res.(*mcp.ListResourcesResult)
			if !ok || err != nil || list.NextCursor != "" {
				return res, err
			}
			recent, err := sp.artifacts.Recent(ctx, transport.CallOf(req).Caller, mostListed)
			if err != nil {
				sp.log.WarnContext(ctx, "recent artifacts cannot be listed", "error", err)
				return res, nil
			}
			out := *list // the SDK's own stays as it is
			out.Resources = slices.Clone(list.Resources)
			for _, a := range recent {
				out.Resources = append(out.Resources, &mcp.Resource{
					URI: a.URI, Name: a.Name, MIMEType: toolset.MediaOf(pathIn(a.URI)), Size: a.Size,
					Annotations: &mcp.Annotations{LastModified: toolset.TimeText(a.At)},
				})
			}
			return &out, nil
		}
	})
}

// pathIn is the path of an address, without what follows it.
func pathIn(uri string) string {
	p, _, _ := strings.Cut(uri, "?")
	return p
}

// fileAddress is the address of a file taken apart.
type fileAddress struct {
	ref, path string
	run       string // as it was after that run; "": as it is
}

func fileOf(uri string) (a fileAddress, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "sandbox" || u.Fragment != "" || u.User != nil {
		return a, false
	}
	a.path = u.Path
	if u.RawQuery != "" || u.ForceQuery {
		if a.run, ok = runIn(u.RawQuery, u.Path); !ok {
			return a, false
		}
	}
	a.ref, err = url.PathUnescape(u.Host)
	return a, err == nil && a.ref != "" && len(u.Path) > 1
}

// readResource reads a file, for clients and not for models: what is wrong with it
// is an error of the protocol, with the words of the tools. An artifact of a sandbox
// that is down or gone is read as the latest run left it; the answer's address says so.
func (sp *profile) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	at, ok := fileOf(uri)
	if !ok {
		return nil, noResource(uri, "it is not an address of the form "+fileTemplate)
	}
	caller := transport.CallOf(req).Caller
	if at.run != "" {
		res, err := sp.readKept(ctx, req, at)
		if err != nil {
			return nil, resourceError(uri, err)
		}
		return res, nil
	}
	info, body, err := sp.Files.ReadFile(ctx, caller, at.ref, at.path, sandbox.ReadFileOptions{})
	if err != nil {
		if at.run = runs.Latest; strings.HasPrefix(at.path, sandbox.Artifacts+"/") && sp.away(ctx, caller, at.ref) {
			if res, kerr := sp.readKept(ctx, req, at); kerr == nil {
				return res, nil
			}
		}
		return nil, resourceError(uri, err)
	}
	defer body.Close()
	if err := transport.CallOf(req).Reserve(ctx, min(info.Size, maxResource)); err != nil {
		return nil, resourceError(uri, err)
	}
	res, size, err := readWhole(uri, at.path, body)
	if err != nil {
		return nil, resourceError(uri, err)
	}
	if res == nil {
		return nil, noResource(uri, tooLong(max(info.Size, size))+sp.insteadOf(ctx, req, at.ref, &info))
	}
	return res, nil
}

// readKept reads an artifact that was copied out, without its sandbox.
func (sp *profile) readKept(ctx context.Context, req *mcp.ReadResourceRequest, at fileAddress) (*mcp.ReadResourceResult, error) {
	f, run, a, err := sp.openKept(ctx, transport.CallOf(req).Caller, at.ref, at.run, at.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	uri := keptURI(run, a.Path)
	if err := transport.CallOf(req).Reserve(ctx, min(a.Size, maxResource)); err != nil {
		return nil, resourceError(uri, err)
	}
	res, _, err := readWhole(uri, a.Path, f)
	if err != nil {
		return nil, err
	}
	if res == nil {
		instead := "GET " + apiruns.Address(run, a.Path) + " with the token"
		if address := transport.CallOf(req).Address; sp.files != nil && address != nil {
			until := time.Now().Add(batch.ArtifactLife).Truncate(time.Second)
			instead = "download it until " + toolset.TimeText(until) + ": " + apiruns.Link(sp.files, address, run, a.Path, until)
		}
		return nil, noResource(uri, tooLong(a.Size)+instead)
	}
	return res, nil
}

func tooLong(size int64) string {
	return fmt.Sprintf("the file has %d bytes, and resources have at most %d; ", size, maxResource)
}

// readWhole reads a file as a resource; nil: it is too long, and at least size bytes.
func readWhole(uri, name string, body io.Reader) (res *mcp.ReadResourceResult, size int64, err error) {
	data, err := io.ReadAll(io.LimitReader(body, maxResource+1))
	if err != nil || len(data) > maxResource {
		return nil, int64(len(data)), err
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: toolset.MediaOf(name)}
	if toolset.IsBinary(data, false) {
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
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, int64(len(data)), nil
}

// insteadOf is a way to a file that is too large for a resource.
func (sp *profile) insteadOf(ctx context.Context, req *mcp.ReadResourceRequest, ref string, info *sandbox.FileInfo) string {
	c := &toolset.Call{Call: transport.CallOf(req), Services: sp.Services, Links: sp.files}
	if s, err := sp.Sandboxes.Get(ctx, c.Caller, ref); err == nil {
		if address, until := c.FileURL(s, info.Path, filelink.DefaultLife); address != "" {
			return "download it until " + toolset.TimeText(until) + ": " + address
		}
	}
	return "use the tool read_file, which reads it in parts"
}

// noResource is the protocol's error for what is not there, with a reason.
func noResource(uri, why string) error {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // text marshals
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no resource " + toolset.Quote(toolset.Clip(uri)) + ": " + why, Data: data}
}

// resourceError says why a file cannot be read.
func resourceError(uri string, err error) error {
	if _, done := errors.AsType[*jsonrpc.Error](err); done {
		return err
	}
	e := fault.As(err)
	if e.Code == fault.Internal || errors.Is(err, context.Canceled) {
		return err
	}
	return noResource(uri, e.Message)
}
