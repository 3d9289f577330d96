// Command graphql validates the documents of Tagboat against GitHub's published GraphQL schema, and prints each with the types
// that its variables and its choices of values have. A test compares the documents and the values with this output.
//
//	go run . SCHEMA DOCUMENT... >testdata/forges/graphql.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// document is a document that the schema admits.
type document struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Variables has the type of each variable.
	Variables map[string]string `json:"variables"`
}

// report is all that the tests compare.
type report struct {
	Documents []document `json:"documents"`
	// Inputs has the members of each input object with their types.
	Inputs map[string]map[string]string `json:"inputs"`
	// Enums has the values of each enumeration that a document reads or sends.
	Enums map[string][]string `json:"enums"`
}

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(schemaFile string, files []string) error {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		return err
	}
	schema, err := load(&ast.Source{Name: schemaFile, Input: string(text)})
	if err != nil {
		return err
	}
	result := report{Inputs: map[string]map[string]string{}, Enums: map[string][]string{}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		query, errors := gqlparser.LoadQueryWithRules(schema, string(text), rules.NewDefaultRules())
		if len(errors) > 0 {
			return fmt.Errorf("%s: %w", file, errors)
		}
		variables := map[string]string{}
		for _, operation := range query.Operations {
			for _, variable := range operation.VariableDefinitions {
				variables[variable.Variable] = variable.Type.String()
				result.addType(schema, variable.Type.Name())
			}
			result.addSelections(schema, operation.SelectionSet)
		}
		result.Documents = append(result.Documents, document{filepath.Base(file), string(text), variables})
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// load reads a schema. The published one defines a few fields twice, of which the first counts.
func load(source *ast.Source) (*ast.Schema, error) {
	parsed, err := parser.ParseSchemas(validator.Prelude, source)
	if err != nil {
		return nil, err
	}
	for _, definition := range parsed.Definitions {
		known := map[string]bool{}
		definition.Fields = slices.DeleteFunc(definition.Fields, func(field *ast.FieldDefinition) bool {
			isKnown := known[field.Name]
			known[field.Name] = true
			return isKnown
		})
	}
	return validator.ValidateSchemaDocument(parsed)
}

// addSelections adds the enumerations of all fields that are read.
func (result *report) addSelections(schema *ast.Schema, set ast.SelectionSet) {
	for _, selection := range set {
		switch selection := selection.(type) {
		case *ast.Field:
			result.addType(schema, selection.Definition.Type.Name())
			result.addSelections(schema, selection.SelectionSet)
		case *ast.InlineFragment:
			result.addSelections(schema, selection.SelectionSet)
		}
	}
}

// addType adds an enumeration, or an input object with the types of its members.
func (result *report) addType(schema *ast.Schema, name string) {
	definition := schema.Types[name]
	switch definition.Kind {
	case ast.Enum:
		values := []string{}
		for _, value := range definition.EnumValues {
			values = append(values, value.Name)
		}
		slices.Sort(values)
		result.Enums[name] = values
	case ast.InputObject:
		if result.Inputs[name] != nil {
			return
		}
		members := map[string]string{}
		result.Inputs[name] = members
		for _, member := range definition.Fields {
			members[member.Name] = member.Type.String()
			result.addType(schema, member.Type.Name())
		}
	}
}
