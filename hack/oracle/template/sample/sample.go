// Package sample holds data of every kind that a template may meet.
package sample

import (
	"errors"
	"strings"
	"time"
)

// Point has two fields and nothing else.
type Point struct {
	X int
	Y int
}

// Named prints as its name.
type Named struct {
	Name string
	Size int `json:"size,omitempty"`
}

// String returns the name in brackets.
func (n Named) String() string { return "<" + n.Name + ">" }

// Inner is embedded in Data.
type Inner struct {
	Deep   string `json:"-"`
	Label  string `json:"label"`
	Shared string
}

// Shout returns the label in capitals.
func (i Inner) Shout() string { return strings.ToUpper(i.Label) }

// Data holds a field of each kind.
type Data struct {
	Inner
	Shared  string
	Yes     bool
	No      bool
	Int     int
	Minus   int
	Int8    int8
	Int32   int32
	Int64   int64
	Uint    uint
	Uint8   uint8
	Uint64  uint64
	Float   float64
	Complex complex128
	Text    string
	Accents string
	Bytes   string
	Blob    []byte
	Texts   []string
	Ints    []int
	Points  []Point
	Anys    []any
	Counts  map[string]int
	Any     map[string]any
	ByInt   map[int]string
	ByBool  map[bool]string
	ByPoint map[Point]string
	ByFloat map[float64]string
	NoMap   map[string]any
	NoInts  []int
	NoPoint *Point
	Point   Point
	ToPoint *Point
	Named   Named
	ToNamed *Named
	Nothing any
	Number  any
	Holder  any
	Month   time.Month
	Add     func(int, int) int
	hidden  string
}

// Greet greets somebody.
func (d Data) Greet(name string) string { return "hello " + name }

// Sum adds two numbers.
func (d Data) Sum(a, b int) int { return a + b }

// Broken always fails.
func (d Data) Broken() (string, error) { return "", errors.New("it is broken") }

// Self returns the data again.
func (d Data) Self() Data { return d }

// Sample returns the data.
func Sample() Data {
	return Data{
		Inner: Inner{Deep: "deep", Label: "label", Shared: "inner"}, Shared: "outer", Yes: true, Int: 42, Minus: -7,
		Int8: -8, Int32: 65, Int64: 1 << 40, Uint: 7, Uint8: 200, Uint64: 1<<64 - 1, Float: 3.25, Complex: 1 + 2i,
		Text: "hello world", Accents: "äöü €😀", Bytes: "a\xffb\x00c", Blob: []byte("blob"),
		Texts: []string{"one", "two", "three"}, Ints: []int{3, 1, 2}, Points: []Point{{1, 2}, {3, 4}},
		Anys: []any{1, "two", 3.5, nil, true, []any{"in"}}, Counts: map[string]int{"b": 2, "a": 1, "c": 0},
		Any:   map[string]any{"name": "any", "none": nil, "list": []any{1, "x"}, "dict": map[string]any{"k": "v"}, "zero": 0},
		ByInt: map[int]string{10: "ten", 9: "nine", -1: "minus"}, ByBool: map[bool]string{true: "t", false: "f"},
		ByPoint: map[Point]string{{2, 1}: "21", {1, 9}: "19", {1, 2}: "12"}, ByFloat: map[float64]string{1.5: "x", -2: "y"},
		Point: Point{5, 6}, ToPoint: &Point{7, 8}, Named: Named{"ann", 3}, ToNamed: &Named{"bob", 0},
		Number: 5, Holder: Named{"held", 1}, Month: time.March, hidden: "hidden",
		Add: func(a, b int) int { return a + b },
	}
}
