// The grid of results: only the modules that the console uses.
import {
  ModuleRegistry,
  CellStyleModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  ColumnAutoSizeModule,
  InfiniteRowModelModule,
  NumberFilterModule,
  TextFilterModule,
} from "ag-grid-community";

ModuleRegistry.registerModules([
  CellStyleModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  ColumnAutoSizeModule,
  InfiniteRowModelModule,
  NumberFilterModule,
  TextFilterModule,
]);

export { createGrid, themeQuartz, colorSchemeDark, colorSchemeLight } from "ag-grid-community";
