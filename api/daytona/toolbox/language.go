// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"net/http"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine/languages"
	"sandpit.dev/fault"
	"sandpit.dev/lsp"
	"sandpit.dev/sandbox"
)

// languageOperations are those on language servers.
func (a *API) languageOperations() []httpapi.Operation {
	return []httpapi.Operation{
		op("toolboxStartLanguageServer", "POST /lsp/start", http.StatusOK, languageError, a.startLanguage),
		op("toolboxStopLanguageServer", "POST /lsp/stop", http.StatusOK, languageError, a.stopLanguage),
		op("toolboxOpenDocument", "POST /lsp/did-open", http.StatusOK, languageError, a.openDocument),
		op("toolboxCloseDocument", "POST /lsp/did-close", http.StatusOK, languageError, a.closeDocument),
		op("toolboxComplete", "POST /lsp/completions", http.StatusOK, languageError, a.complete),
		op("toolboxDocumentSymbols", "GET /lsp/document-symbols", http.StatusOK, languageError, a.documentSymbols).ReadsContent(),
		op("toolboxSymbols", "GET /lsp/workspacesymbols", http.StatusOK, languageError, a.symbols).ReadsContent(),
	}
}

// languageError returns an error about a language server with the client's names of fields, and the code that it has a class for.
func languageError(err error) error {
	if fault.ReasonOf(err) == languages.ReasonNotStarted {
		return guard.WithStatus(http.StatusBadRequest, withCode(err, wire.CodeLSPNotInitialized))
	}
	var sp httpapi.Spellings
	for own, theirs := range map[string]string{"language": "languageId", "project": "pathToProject", "path": "uri"} {
		sp.Wrote(own, theirs)
	}
	return fileError(sp.Rename(err))
}

func serverOf(s wire.LanguageServer) languages.At {
	return languages.At{Language: s.Language, Project: s.Project}
}

// fileOfURI returns the path of a document: clients put a scheme before it, and leave it as it is.
func fileOfURI(uri string) (string, error) {
	file, ok := strings.CutPrefix(uri, "file://")
	if !ok || file == "" {
		return "", fault.InvalidField("uri", "%q is not file:// and a path", sandbox.Clip(uri, 80))
	}
	return file, nil
}

type ofServer struct {
	Ref  string `path:"id"`
	Body wire.LanguageServer
}

func (a *API) startLanguage(ctx context.Context, c *httpapi.Call, in *ofServer) (wire.Nothing, error) {
	return wire.Nothing{}, a.Languages.Start(ctx, c.Caller, in.Ref, serverOf(in.Body))
}

func (a *API) stopLanguage(ctx context.Context, c *httpapi.Call, in *ofServer) (wire.Nothing, error) {
	return wire.Nothing{}, a.Languages.Stop(ctx, c.Caller, in.Ref, serverOf(in.Body))
}

type ofDocument struct {
	Ref  string `path:"id"`
	Body wire.Document
}

func (a *API) openDocument(ctx context.Context, c *httpapi.Call, in *ofDocument) (wire.Nothing, error) {
	file, err := fileOfURI(in.Body.URI)
	if err != nil {
		return wire.Nothing{}, err
	}
	return wire.Nothing{}, a.Languages.Open(ctx, c.Caller, in.Ref, serverOf(in.Body.LanguageServer), file)
}

func (a *API) closeDocument(ctx context.Context, c *httpapi.Call, in *ofDocument) (wire.Nothing, error) {
	file, err := fileOfURI(in.Body.URI)
	if err != nil {
		return wire.Nothing{}, err
	}
	return wire.Nothing{}, a.Languages.Close(ctx, c.Caller, in.Ref, serverOf(in.Body.LanguageServer), file)
}

type complete struct {
	Ref  string `path:"id"`
	Body wire.Complete
}

func (a *API) complete(ctx context.Context, c *httpapi.Call, in *complete) (wire.Completions, error) {
	b := &in.Body
	file, err := fileOfURI(b.URI)
	if err != nil {
		return wire.Completions{}, err
	}
	if b.Position == nil {
		return wire.Completions{}, fault.InvalidField("position", "is missing")
	}
	list, err := a.Languages.Complete(ctx, c.Caller, in.Ref, serverOf(b.LanguageServer), file, lsp.Position(*b.Position))
	if err != nil {
		return wire.Completions{}, err
	}
	out := wire.Completions{Incomplete: list.Incomplete, Items: make([]wire.Completion, len(list.Items))}
	for i, one := range list.Items {
		out.Items[i] = wire.Completion{
			Label: one.Label, Kind: one.Kind, Detail: one.Detail, SortText: one.SortText, FilterText: one.FilterText, InsertText: one.InsertText,
		}
		if d := wire.Documentation(one.Documentation); d != (wire.Documentation{}) {
			out.Items[i].Documentation = &d
		}
	}
	return out, nil
}

type symbols struct {
	Ref      string  `path:"id"`
	Language *string `query:"languageId"`
	Project  *string `query:"pathToProject"`
	URI      *string `query:"uri"`
	Query    *string `query:"query"`
}

func (in *symbols) at() languages.At {
	return languages.At{Language: httpapi.Given(in.Language), Project: httpapi.Given(in.Project)}
}

func (a *API) documentSymbols(ctx context.Context, c *httpapi.Call, in *symbols) ([]wire.Symbol, error) {
	file, err := fileOfURI(httpapi.Given(in.URI))
	if err != nil {
		return nil, err
	}
	all, err := a.Languages.DocumentSymbols(ctx, c.Caller, in.Ref, in.at(), file)
	return symbolsOf(all), err
}

func (a *API) symbols(ctx context.Context, c *httpapi.Call, in *symbols) ([]wire.Symbol, error) {
	all, err := a.Languages.Symbols(ctx, c.Caller, in.Ref, in.at(), httpapi.Given(in.Query))
	return symbolsOf(all), err
}

func symbolsOf(all []lsp.Symbol) []wire.Symbol {
	out := make([]wire.Symbol, len(all))
	for i, s := range all {
		r := s.Location.Range
		out[i] = wire.Symbol{Name: s.Name, Kind: s.Kind, Location: wire.Location{
			URI: s.Location.URI, Range: wire.Range{Start: wire.Position(r.Start), End: wire.Position(r.End)},
		}}
	}
	return out
}
