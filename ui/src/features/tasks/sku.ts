/** Lays the SKUs of a goods page out for reading: a matrix for two dimensions, a list otherwise. Pure. */
import type { DimensionView, SkuView } from '../../api/bindings';

export interface Matrix {
  kind: 'matrix';
  rowName: string;
  columnName: string;
  columns: string[];
  rows: { text: string; cells: (SkuView | null)[] }[];
}

export interface Lines {
  kind: 'lines';
  /** Names of the dimensions; empty for goods with a single SKU and no choice. */
  names: string[];
  rows: SkuView[];
}

export function layOut(dimensions: readonly DimensionView[], skus: readonly SkuView[]): Matrix | Lines {
  const [first, second] = dimensions;
  if (dimensions.length !== 2 || !first || !second) {
    return { kind: 'lines', names: dimensions.map((dimension) => dimension.name), rows: [...skus] };
  }
  // JSON keeps apart what plain joining would mix up ("a/b" + "c" and "a" + "b/c").
  const byOptions = new Map(skus.map((sku) => [JSON.stringify(sku.options), sku]));
  const columns = textsOf(second, skus, 1);
  return {
    kind: 'matrix',
    rowName: first.name,
    columnName: second.name,
    columns,
    rows: textsOf(first, skus, 0).map((text) => ({
      text,
      cells: columns.map((column) => byOptions.get(JSON.stringify([text, column])) ?? null),
    })),
  };
}

/** The values of a dimension in page order, and any that only a SKU names: nothing read is hidden. */
function textsOf(dimension: DimensionView, skus: readonly SkuView[], at: number): string[] {
  const texts = new Set(dimension.values.map((value) => value.text));
  for (const sku of skus) {
    const text = sku.options[at];
    if (text !== undefined) texts.add(text);
  }
  return [...texts];
}
