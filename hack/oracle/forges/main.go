// Command forges records the requests that public clients for GitLab and Bitbucket send for the operations that Tagboat uses.
//
// It prints a JSON table: each request with its client, method, path, names of query parameters, and names of members of
// the body. Members with an empty value are left out, because some clients always send all members.
//
// Usage: forges > testdata/forges/go-clients.json
package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"

	datacenter "github.com/gfleury/go-bitbucket-v1"
	"github.com/ktrysmt/go-bitbucket"
	"gitlab.com/gitlab-org/api/client-go"
)

// Row is one request.
type Row struct {
	Client  string   `json:"client"`
	Method  string   `json:"method"`
	Path    string   `json:"path"`
	Query   []string `json:"query"`
	Members []string `json:"members"`
}

var (
	rows   []Row
	client string
	number = regexp.MustCompile(`/\d+(/|$)`)
)

// record answers each request with an empty document, and adds it to the table.
func record(writer http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	var document any
	_ = json.Unmarshal(body, &document)
	row := Row{Client: client, Method: request.Method, Query: []string{}, Members: []string{}}
	// Below the base of the API, and without the slash that one client adds.
	row.Path = strings.TrimSuffix(request.URL.EscapedPath(), "/")
	for _, base := range []string{"/api/v4/", "/2.0/", "/rest/api/1.0/"} {
		row.Path = strings.TrimPrefix(row.Path, base)
	}
	row.Path = number.ReplaceAllString(row.Path, "/{number}$1")
	for name := range request.URL.Query() {
		row.Query = append(row.Query, name)
	}
	members("", document, &row.Members)
	slices.Sort(row.Query)
	slices.Sort(row.Members)
	row.Members = slices.Compact(row.Members)
	rows = append(rows, row)
	writer.Header().Set("Content-Type", "application/json")
	list := strings.HasPrefix(row.Path, "users") || request.Method == "GET" && client == "gitlab" &&
		(strings.HasSuffix(row.Path, "merge_requests") || strings.HasSuffix(row.Path, "merge_trains"))
	if list || strings.Contains(row.Path, "merge_trains/") {
		_, _ = io.WriteString(writer, "[]")
	} else {
		_, _ = io.WriteString(writer, `{"values": []}`)
	}
}

// members adds the names of all members that are not empty, with dots between levels.
func members(prefix string, value any, found *[]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			members(strings.TrimPrefix(prefix+"."+name, "."), below, found)
		}
	case []any:
		for _, below := range value {
			members(prefix, below, found)
		}
	case nil:
	default:
		if value != "" && value != 0.0 && value != false {
			*found = append(*found, prefix)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func recordGitlab(url string) {
	client = "gitlab"
	api := must(gitlab.NewClient("token", gitlab.WithBaseURL(url)))
	project, labels := "team/apps/fleet", gitlab.LabelOptions{"images", "fleet"}
	requests := api.MergeRequests
	text, yes, page := gitlab.Ptr("text"), gitlab.Ptr(true), gitlab.ListOptions{Page: 2, PerPage: 100}
	_, _, _ = api.Users.ListUsers(&gitlab.ListUsersOptions{Username: text})
	_, _, _ = api.Projects.GetProject(project, nil)
	_, _, _ = requests.ListProjectMergeRequests(project, &gitlab.ListProjectMergeRequestsOptions{
		ListOptions: page, State: text, OrderBy: text, Sort: text, SourceBranch: text, TargetBranch: text,
	})
	_, _, _ = requests.GetMergeRequest(project, 7, nil)
	_, _, _ = requests.GetMergeRequestApprovals(project, 7)
	_, _, _ = requests.CreateMergeRequest(project, &gitlab.CreateMergeRequestOptions{
		Title: text, Description: text, SourceBranch: text, TargetBranch: text, Labels: &labels,
		AssigneeIDs: &[]int64{31}, ReviewerIDs: &[]int64{31},
	})
	_, _, _ = requests.UpdateMergeRequest(project, 7, &gitlab.UpdateMergeRequestOptions{
		Title: text, Description: text, AddLabels: &labels, RemoveLabels: &labels, StateEvent: text,
	})
	_, _, _ = requests.AcceptMergeRequest(project, 7, &gitlab.AcceptMergeRequestOptions{
		AutoMerge: yes, MergeWhenPipelineSucceeds: yes, SHA: text, Squash: yes,
	})
	_, _, _ = requests.CancelMergeWhenPipelineSucceeds(project, 7)
	_, _, _ = api.MergeTrains.ListProjectMergeTrains(project, &gitlab.ListMergeTrainsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100}, Scope: text,
	})
	_, _, _ = api.MergeTrains.AddMergeRequestToMergeTrain(project, 7, &gitlab.AddMergeRequestToMergeTrainOptions{
		AutoMerge: yes, WhenPipelineSucceeds: yes, SHA: text, Squash: yes,
	})
}

func recordBitbucket(url string) {
	client = "bitbucket"
	api := must(bitbucket.NewOAuthbearerTokenWithBaseUrlStr("token", url+"/2.0"))
	requests := api.Repositories.PullRequests
	options := func(change func(*bitbucket.PullRequestsOptions)) *bitbucket.PullRequestsOptions {
		options := &bitbucket.PullRequestsOptions{Owner: "team", RepoSlug: "fleet", ID: "7"}
		change(options)
		return options
	}
	_, _ = requests.List(options(func(to *bitbucket.PullRequestsOptions) {
		to.States, to.Query, to.Sort = []string{"OPEN"}, "q", "-created_on"
	}))
	_, _ = requests.Get(options(func(*bitbucket.PullRequestsOptions) {}))
	_, _ = requests.Create(options(func(to *bitbucket.PullRequestsOptions) {
		to.Title, to.Description, to.SourceBranch, to.DestinationBranch, to.Draft = "t", "d", "head", "main", true
	}))
	_, _ = requests.Update(options(func(to *bitbucket.PullRequestsOptions) {
		to.Title, to.Description, to.Reviewers, to.Draft = "t", "d", []string{"{id}"}, true
	}))
	_, _ = requests.Decline(options(func(*bitbucket.PullRequestsOptions) {}))
	_, _ = requests.Merge(options(func(to *bitbucket.PullRequestsOptions) { to.MergeStrategy = "squash" }))
	branch := &bitbucket.RepositoryBranchOptions{Owner: "team", RepoSlug: "fleet", BranchName: "main"}
	_, _ = api.Repositories.Repository.GetBranch(branch)
	_, _ = api.Workspaces.Members("team")
}

func recordDataCenter(url string) {
	client = "bitbucket-data-center"
	api := datacenter.NewAPIClient(context.Background(), datacenter.NewConfiguration(url+"/rest")).DefaultApi
	reference := func(branch string) datacenter.PullRequestRef {
		place := datacenter.Repository{Slug: "fleet", Project: &datacenter.Project{Key: "OPS"}}
		return datacenter.PullRequestRef{ID: "refs/heads/" + branch, Repository: place}
	}
	_, _ = api.GetPullRequestsPage("OPS", "fleet", map[string]any{
		"direction": "OUTGOING", "at": "refs/heads/head", "state": "ALL", "order": "NEWEST", "limit": 100, "start": 0,
	})
	_, _ = api.GetPullRequest("OPS", "fleet", 7)
	_, _ = api.GetPullRequestSettings("OPS", "fleet")
	_, _ = api.CanMerge("OPS", "fleet", 7)
	_, _ = api.CreatePullRequest("OPS", "fleet", datacenter.PullRequest{
		Title: "t", Description: "d", FromRef: reference("head"), ToRef: reference("main"),
	})
	_, _ = api.UpdatePullRequest("OPS", "fleet", &datacenter.EditPullRequestOptions{
		Version: "5", Title: "t", Description: "d",
	})
	_, _ = api.Decline("OPS", "fleet", 7, map[string]any{"version": int32(5)})
	_, _ = api.AssignParticipantRole("OPS", "fleet", 7)
	_, _ = api.Merge("OPS", "fleet", 7, map[string]any{"version": int32(5)}, map[string]any{}, []string{"application/json"})
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(record))
	defer server.Close()
	recordGitlab(server.URL)
	recordBitbucket(server.URL)
	recordDataCenter(server.URL)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	must(0, encoder.Encode(rows))
}
