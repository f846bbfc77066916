// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"errors"
	"net/url"
	"path"
)

// FileURI is the URI of a file by its absolute path.
func FileURI(p string) string { return (&url.URL{Scheme: "file", Path: p}).String() }

// folder is a directory that a project is in.
type folder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

func (c *Client) folders() []folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root == "" {
		return nil
	}
	return []folder{{c.root, path.Base(c.root)}}
}

// object is a value of JSON's.
type object = map[string]any

// capabilities are what is told of this client: that it knows the plain forms alone.
func capabilities() object {
	return object{
		"workspace": object{"configuration": true, "workspaceFolders": true, "symbol": object{}},
		"textDocument": object{
			"synchronization": object{},
			"completion":      object{"completionItem": object{"snippetSupport": false, "documentationFormat": []string{"markdown", "plaintext"}}},
			"documentSymbol":  object{"hierarchicalDocumentSymbolSupport": false},
		},
	}
}

// Initialize has the server begin with a project, a directory by its absolute path. options are of the server's own kind;
// nil: none. It comes before all other calls, once.
func (c *Client) Initialize(ctx context.Context, project string, options any) error {
	uri := FileURI(project)
	c.mu.Lock()
	c.root = uri
	c.mu.Unlock()
	_, err := c.call(ctx, "initialize", struct {
		Process      *int     `json:"processId"` // which is not where the server is
		Client       object   `json:"clientInfo"`
		RootPath     string   `json:"rootPath"`
		RootURI      string   `json:"rootUri"`
		Folders      []folder `json:"workspaceFolders"`
		Capabilities object   `json:"capabilities"`
		Options      any      `json:"initializationOptions,omitempty"`
	}{nil, object{"name": "sandpit"}, project, uri, c.folders(), capabilities(), options})
	if err != nil {
		return err
	}
	if err := c.notify(ctx, "initialized", object{}); err != nil {
		return err
	}
	return c.notify(ctx, "workspace/didChangeConfiguration", object{"settings": object{}})
}

// Ping returns when the server has answered to something that it does not know.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.call(ctx, "$/ping", nil)
	if _, answered := errors.AsType[*ResponseError](err); answered {
		return nil
	}
	return err
}

// Shutdown asks the server to end, which then ends the stream. Who does not want to wait for that calls Close.
func (c *Client) Shutdown(ctx context.Context) error {
	if _, err := c.call(ctx, "shutdown", nil); err != nil {
		return err
	}
	return c.notify(ctx, "exit", nil)
}
